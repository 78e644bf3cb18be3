"""Safe planning at the paper's scale: the indoor robot by depth and by camera, and a sidewalk
that others wrote."""
