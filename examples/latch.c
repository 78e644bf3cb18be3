/* The latch of a shield, as pacbound.Shield has it: it fires once the danger is at the threshold,
   or is anything but a number from 0 to 1, and stays fired until reset. Keep the threshold in all
   its digits, and compare in double. Do not compile with -ffast-math: it assumes that there is no
   NaN. */
#include <stdbool.h>

#ifdef __FAST_MATH__
#error "compile without -ffast-math: the latch must see NaN"
#endif

typedef struct {
    double threshold; /* of the certificate; -INFINITY always brakes */
    bool fired;
} latch;

void latch_reset(latch *one) { one->fired = false; }

/* Whether the backup must act. Call it once for each observation that is acted on. */
bool latch_look(latch *one, double danger) {
    if (danger > 1.0 && danger <= 1.0 + 1e-6) danger = 1.0; /* a softmax may end just above 1 */
    bool valid = danger >= 0.0 && danger <= 1.0;            /* false for NaN */
    if (!valid || !(danger < one->threshold)) one->fired = true;
    return one->fired;
}
