#include "playing/stonewall.h"

#include <math.h>

void und_stonewall_begin(struct und_stonewall *wall, double deadline_s, int64_t most)
{
    *wall = (struct und_stonewall){.deadline_s = deadline_s, .end_s = INFINITY, .most = most};
}

bool und_stonewall_is_over(struct und_stonewall *wall)
{
    if (wall->deadline_s <= 0)
        return false;
    const double now = und_clock();
    if (isinf(wall->end_s))
        wall->end_s = now + wall->deadline_s;
    return now >= wall->end_s;
}

void und_stonewall_wear(struct und_stonewall *wall, int64_t again, int64_t most)
{
    wall->at_deadline = und_stonewall_stop(wall);
    wall->is_worn = true;
    wall->stops = false;
    wall->deadline_s = 0;
    wall->end_s = INFINITY;
    wall->again = again;
    wall->most = most < wall->most ? most : wall->most;
}

struct und_stop und_stonewall_stop(const struct und_stonewall *wall)
{
    return wall->is_worn ? wall->at_deadline
                         : (struct und_stop){.ranks = wall->stops, .transfers = wall->transfers, .bytes = wall->bytes};
}
