"""An animation for the documentation: one room, driven without and with the certified shield. From
the repository root:

    python -m experiments.safe_planning.animation

The room is the first new one in which the policy alone collides after a while and the shield stops
it. An SVG file that moves by itself in any browser.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.robot import DangerModel, ImagePolicy, IndoorNavigation, Room, brake
from experiments.robot.rooms import ROBOT_RADIUS, TEST
from experiments.safe_planning.ablation import DEFAULT_DELTA, DEFAULT_XI
from experiments.safe_planning.methods import threshold
from experiments.safe_planning.tasks import collected
from experiments.shield.task import HORIZON
from pacbound import Shield

SCALE = 46
PAUSE = 15
"""Steps for which the last picture stays."""
COLOURS = {
    "wall": "#8C8C8C",
    "box": "#A98467",
    "cylinder": "#6C8F7D",
    "table top": "none",
    "table leg": "#4A4238",
}
DRIVES, BRAKES, UNSAFE, GOAL = "#0072B2", "#E69F00", "#D55E00", "#009E73"


@dataclass(frozen=True)
class Trip:
    """Where the robot was, how dangerous it looked, when the shield fired, and how it ended."""

    poses: list[tuple[float, float, float]]
    dangers: list[float]
    fired_at: int
    collided: bool


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("docs/figures/shield_animation.svg"))
    options = parser.parse_args()
    law = collected("depth")
    assert law is not None
    limit = threshold("exact", law, xi=DEFAULT_XI, delta=DEFAULT_DELTA)
    for seed in TEST:
        alone = trip(seed, math.inf)
        if not alone.collided or len(alone.poses) < 30:
            continue
        shielded = trip(seed, limit)
        if not shielded.collided and shielded.fired_at >= 20:
            break
    env = IndoorNavigation()
    _, info = env.reset(seed=seed)
    options.out.write_text(svg(info["room"], alone, shielded, limit), encoding="utf-8")
    print(f"seed {seed}: {len(alone.poses)} steps alone, fired at {shielded.fired_at}")


def trip(seed: int, limit: float) -> Trip:
    """One drive under a shield, until the robot stands, arrives or collides."""
    env, danger = IndoorNavigation(), DangerModel.load()
    shield = Shield(ImagePolicy.load(), brake, danger, limit)
    observation, info = env.reset(seed=seed)
    poses, dangers, fired_at = [info["pose"]], [danger(observation)], -1
    while not (info["unsafe"] or info["success"] or (fired_at < 0 and len(poses) > HORIZON)):
        action = shield(observation)
        if shield.fired and fired_at < 0:
            fired_at = len(poses) - 1
        if shield.fired and env.is_stopped():
            break
        observation, _, _, _, info = env.step(action)
        poses.append(info["pose"])
        dangers.append(danger(observation))
    return Trip(poses, dangers, fired_at, info["unsafe"])


def svg(room: Room, alone: Trip, shielded: Trip, limit: float) -> str:
    """Two panels side by side, with the danger of each beneath."""
    width, height = room.width * SCALE, room.depth * SCALE
    steps = max(len(alone.poses), len(shielded.poses)) + PAUSE
    gap, above, below = 30, 34, 96
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * width + 3 * gap:.0f} '
        f'{height + above + below:.0f}" font-family="sans-serif" font-size="17">',
        "<title>The same room without and with a certified shield</title>",
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    titles = ("Shield off", "Shield on")
    for place, (title, way) in enumerate(zip(titles, (alone, shielded), strict=True)):
        left = gap + place * (width + gap)
        parts += [
            f'<g transform="translate({left:.0f} {above})">',
            f'<text x="0" y="-12">{title}</text>',
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="#F4F4F4"/>',
            *furniture(room),
            *robot(room, way, steps),
            *meter(way, limit, steps, width, height),
            *news(way, steps, width),
            "</g>",
        ]
    return "\n".join([*parts, "</svg>", ""])


def furniture(room: Room) -> list[str]:
    """The room from above, y upwards."""
    parts = []
    for piece in room.obstacles:
        x, y = piece.x * SCALE, (room.depth - piece.y) * SCALE
        line = ' stroke="#A98467" stroke-dasharray="4 3"' if piece.kind == "table top" else ""
        look = f'fill="{COLOURS[piece.kind]}"{line}'
        if piece.is_round:
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{piece.half_size[0] * SCALE:.1f}" {look}/>'
            )
        else:
            long, wide = piece.half_size[0] * SCALE, piece.half_size[1] * SCALE
            parts.append(
                f'<rect x="{-long:.1f}" y="{-wide:.1f}" width="{2 * long:.1f}" '
                f'height="{2 * wide:.1f}" {look} transform="translate({x:.1f} {y:.1f}) '
                f'rotate({-math.degrees(piece.yaw):.1f})"/>'
            )
    x, y = room.goal[0] * SCALE, (room.depth - room.goal[1]) * SCALE
    return [
        *parts,
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{0.4 * SCALE:.1f}" fill="none" stroke="{GOAL}" '
        'stroke-width="3"/>',
        f'<text x="{x:.1f}" y="{y + 5:.1f}" text-anchor="middle" font-size="13" '
        f'fill="{GOAL}">goal</text>',
    ]


def robot(room: Room, way: Trip, steps: int) -> list[str]:
    """The robot on its way, and the way behind it; its colour says who drives."""
    held = padded(way.poses, steps)
    places = [(x * SCALE, (room.depth - y) * SCALE, -math.degrees(turn)) for x, y, turn in held]
    trail = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places[: len(way.poses)])
    colours = [
        UNSAFE
        if way.collided and step >= len(way.poses) - 1
        else BRAKES
        if 0 <= way.fired_at <= step
        else DRIVES
        for step in range(steps)
    ]
    moves = ";".join(f"{x:.1f} {y:.1f}" for x, y, _ in places)
    turns = ";".join(
        f"{turn:.0f}" for turn in np.degrees(np.unwrap(np.radians([p[2] for p in places])))
    )
    radius = ROBOT_RADIUS * SCALE
    return [
        f'<polyline points="{trail}" fill="none" stroke="#BBBBBB" stroke-width="2"/>',
        "<g>",
        animated("animateTransform", moves, steps, 'attributeName="transform" type="translate"'),
        f'<g><circle r="{radius:.1f}" fill="{DRIVES}">',
        animated("animate", ";".join(colours), steps, 'attributeName="fill" calcMode="discrete"'),
        f'</circle><path d="M{radius * 0.2:.1f} -5 L{radius * 0.9:.1f} 0 L{radius * 0.2:.1f} 5 Z" '
        'fill="white"/>',
        animated("animateTransform", turns, steps, 'attributeName="transform" type="rotate"'),
        "</g></g>",
    ]


def meter(way: Trip, limit: float, steps: int, width: float, height: float) -> list[str]:
    """A bar as long as the danger, and the threshold across it."""
    full, top = width - 80, height + 40
    lengths = ";".join(f"{full * danger:.0f}" for danger in padded(way.dangers, steps))
    mark = 80 + full * limit
    return [
        f'<text x="0" y="{top + 16:.0f}">danger</text>',
        f'<rect x="80" y="{top:.0f}" width="{full:.0f}" height="22" fill="#EEEEEE"/>',
        f'<rect x="80" y="{top:.0f}" width="0" height="22" fill="{BRAKES}">',
        animated("animate", lengths, steps, 'attributeName="width"'),
        "</rect>",
        f'<line x1="{mark:.0f}" x2="{mark:.0f}" y1="{top - 6:.0f}" y2="{top + 28:.0f}" '
        'stroke="black" stroke-width="2"/>',
        f'<text x="{mark:.0f}" y="{top + 46:.0f}" text-anchor="middle" font-size="14">certified '
        f"threshold {limit:.2f}</text>",
    ]


def news(way: Trip, steps: int, width: float) -> list[str]:
    """What has happened, in words, from the moment it happens."""
    moment, words, colour = (
        (len(way.poses) - 1, "it collides", UNSAFE)
        if way.collided
        else (way.fired_at, "it brakes in time", "#8A6000")
    )
    if moment < 0:
        return []
    seen = ";".join("1" if step >= moment else "0" for step in range(steps))
    return [
        f'<text x="{width:.0f}" y="-12" text-anchor="end" font-weight="bold" fill="{colour}" '
        f'opacity="0">{words}',
        animated("animate", seen, steps, 'attributeName="opacity" calcMode="discrete"'),
        "</text>",
    ]


def animated(tag: str, values: str, steps: int, what: str) -> str:
    return f'<{tag} {what} values="{values}" dur="{steps / 10:.1f}s" repeatCount="indefinite"/>'


def padded(values: list[Any], steps: int) -> list[Any]:
    return [*values, *[values[-1]] * (steps - len(values))]


if __name__ == "__main__":
    main()
