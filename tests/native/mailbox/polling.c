/* When a waiter polls: fed with costs and outcomes, by no clock. */
#include "polling.h"

#include <assert.h>
#include <stdio.h>

static const int64_t LONG_NS = 9000000000;
static uint64_t noise = 1;

static double chance(void) {
    noise = noise * 6364136223846793005u + 1442695040888963407u;
    return (double)(noise >> 33) / (double)(1u << 31);
}

/* -- the choice between polling and sleeping ------------------------------------------------------------------------ */

typedef int64_t cost(int polls, int64_t now_ns);
typedef struct {
    double mean_ns;
    int64_t tasks[2]; /* asleep, polling */
} outcome;

/* What a process pays that makes one call after the other. */
static outcome run(cost *cost_of) {
    hbrt_choice choice;
    outcome found = {0};
    int64_t now_ns = 0;
    hbrt_choice_begin(&choice, 1);
    while (now_ns < LONG_NS) {
        int polls = choice.polls;
        int64_t cost_ns = cost_of(polls, now_ns);
        now_ns += cost_ns;
        if (choice.measures) hbrt_choice_note(&choice, cost_ns, now_ns);
        else hbrt_choice_skip(&choice);
        found.tasks[polls]++;
    }
    found.mean_ns = (double)now_ns / (double)(found.tasks[0] + found.tasks[1]);
    return found;
}

static int64_t asleep_ns, polled_ns;
static int64_t fixed(int polls, int64_t now_ns) {
    (void)now_ns;
    return polls ? polled_ns : asleep_ns;
}

static int64_t busy_meanwhile(int polls, int64_t now_ns) {
    int is_busy = LONG_NS / 3 < now_ns && now_ns < 2 * (LONG_NS / 3);
    return is_busy ? (polls ? 48000 : 30000) : polls ? 12000 : 60000;
}

/* A rare lost time slice is no reason not to poll. */
static int64_t seldom_lost(int polls, int64_t now_ns) {
    (void)now_ns;
    return (polls ? 12000 : 60000) + (chance() < 0.001 ? 4000000 : 0);
}

/* Tasks of a waiter that polls lose a time slice more often. */
static int64_t often_lost(int polls, int64_t now_ns) {
    (void)now_ns;
    return 15000 + (int64_t)(chance() * 10000) + polls * 10000 + (chance() < (polls ? 0.03 : 0.005) ? 3000000 : 0);
}

/* The first tasks after a change still meet a core that does what suited the other way. */
static int64_t late_core(int polls, int64_t now_ns) {
    static int last = 1;
    static int64_t changed_ns;
    if (polls != last) last = polls, changed_ns = now_ns;
    return now_ns - changed_ns < 3000000 ? 200000 : polls ? 12000 : 30000;
}

static void test_choice(void) {
    static const int64_t pairs[][2] = {{60000, 12000}, {30000, 48000}, {30000, 4000000}, {4000000, 30000}, {40000, 42000}};
    for (int n = 0; n < 5; n++) {
        asleep_ns = pairs[n][0], polled_ns = pairs[n][1];
        assert(run(fixed).mean_ns <= 1.06 * (double)(asleep_ns < polled_ns ? asleep_ns : polled_ns));
    }
    asleep_ns = polled_ns = 50000; /* a tie is no reason to poll */
    outcome tie = run(fixed);
    assert(10 * tie.tasks[1] < tie.tasks[0]);
    outcome meanwhile = run(busy_meanwhile);
    double ideal = (double)LONG_NS / 3 / 12000 * 2 + (double)LONG_NS / 3 / 30000;
    assert((double)(meanwhile.tasks[0] + meanwhile.tasks[1]) >= 0.9 * ideal);
    outcome seldom = run(seldom_lost);
    assert(20 * seldom.tasks[0] < seldom.tasks[1]);
    outcome late = run(late_core);
    assert(10 * late.tasks[0] < late.tasks[1]);
    assert(run(often_lost).mean_ns <= 1.1 * (20000 + 0.005 * 3000000));

    /* Who calls seldom, as a camera does, is not tried for longer. */
    hbrt_choice choice;
    int64_t polled = 0, now_ns = 0;
    hbrt_choice_begin(&choice, 1);
    for (int n = 0; n < 20000; n++) {
        now_ns += 33000000;
        polled += choice.polls;
        if (choice.measures) hbrt_choice_note(&choice, choice.polls ? 48000 : 30000, now_ns);
        else hbrt_choice_skip(&choice);
    }
    assert(polled <= 2000);
    hbrt_choice_begin(&choice, 0);
    assert(!choice.polls && !choice.measures);
}

/* -- the expected duration of a call -------------------------------------------------------------------------------- */

static void test_times(void) {
    static hbrt_times times;
    const int64_t usual_ns = 2000000;
    char blur[CALL_BYTES] = "blur", warp[CALL_BYTES] = "warp", flip[CALL_BYTES] = "flip";
    hbrt_times_note(&times, blur, 3 * usual_ns);
    hbrt_times_note(&times, warp, 2 * usual_ns);
    assert(hbrt_times_of(&times, warp) == 2 * usual_ns && hbrt_times_of(&times, flip) == 0);
    hbrt_times_note(&times, blur, usual_ns); /* shorter calls are followed at once, longer ones slowly */
    assert(hbrt_times_of(&times, blur) == usual_ns);
    hbrt_times_note(&times, blur, 3 * usual_ns);
    assert(hbrt_times_of(&times, blur) > usual_ns && hbrt_times_of(&times, blur) < 2 * usual_ns);
    for (int n = 0; n < 30; n++) hbrt_times_note(&times, blur, 3 * usual_ns);
    assert((double)hbrt_times_of(&times, blur) > 2.9 * (double)usual_ns);
    /* A call that has become short or very long is forgotten. */
    hbrt_times_note(&times, blur, MIN_EXPECTED_NS - 1);
    hbrt_times_note(&times, warp, MAX_EXPECTED_NS + 1);
    assert(hbrt_times_of(&times, blur) == 0 && hbrt_times_of(&times, warp) == 0);
    /* Calls that vary by a fifth seldom end before their poll window. */
    int early = 0;
    int64_t poll_ns;
    hbrt_times_note(&times, blur, usual_ns);
    for (int n = 0; n < 1000; n++) {
        int64_t took_ns = (int64_t)((double)usual_ns * (0.8 + 0.4 * chance()));
        early += took_ns < hbrt_window(hbrt_times_of(&times, blur), &poll_ns);
        hbrt_times_note(&times, blur, took_ns);
    }
    assert(early < 100);
    for (int64_t expected_ns = MIN_EXPECTED_NS; expected_ns <= MAX_EXPECTED_NS; expected_ns += 99991) {
        int64_t sleep_ns = hbrt_window(expected_ns, &poll_ns);
        assert(0 <= sleep_ns && sleep_ns < expected_ns && expected_ns < sleep_ns + poll_ns && poll_ns <= 3 * MAX_MARGIN_NS);
        assert(expected_ns < 9600000 || poll_ns <= expected_ns / 8);
    }
}

/* -- the habit ------------------------------------------------------------------------------------------------------ */

/* Wait once: whether it polls, and learns that. */
static int waits(hbrt_habit *habit, int outcome) {
    int polls = hbrt_habit_begin(habit) > 0;
    if (polls) hbrt_habit_note(habit, outcome);
    return polls;
}

static int skipped_before(hbrt_habit *habit, int outcome) {
    int skipped = 0;
    while (!waits(habit, outcome)) skipped++;
    return skipped;
}

static void test_habit(void) {
    hbrt_habit never = {0}, habit = {.budget_ns = 1, .most_skipped = SKIPPED_IN_VAIN, .most_skipped_cpu_lost = SKIPPED_CPU_LOST};
    assert(!waits(&never, HBRT_POLL_PAID));
    /* More and more waits are skipped, but not all. */
    hbrt_habit vain = habit;
    for (int n = 0, last = 0; n < 9; n++) {
        int skipped = skipped_before(&vain, HBRT_POLL_VAIN);
        assert(skipped >= last && skipped < 1 << SKIPPED_IN_VAIN);
        last = skipped;
    }
    /* Who comes in bursts is looked for in every burst; who seldom comes, seldom. */
    hbrt_habit bursts = habit, seldom = habit, little = habit;
    int in_bursts = 0, in_vain = 0;
    for (int n = 0; n < 550; n++) in_bursts += waits(&bursts, n % 11 < 10 ? HBRT_POLL_PAID : HBRT_POLL_VAIN) && n % 11 < 10;
    for (int n = 0; n < 1000; n++) in_vain += waits(&seldom, n % 4 == 0 ? HBRT_POLL_PAID : HBRT_POLL_VAIN);
    assert(in_bursts >= 350 && in_vain < 200);
    little.most_skipped = 1;
    for (int n = 0; n < 50; n++) assert(skipped_before(&little, HBRT_POLL_VAIN) <= 1);
    /* Who lost the CPU often comes back slowly, whatever comes then. */
    for (int n = 0; n < SKIPPED_IN_VAIN + 2; n++) skipped_before(&habit, HBRT_POLL_VAIN_LOST_CPU);
    skipped_before(&habit, HBRT_POLL_VAIN);
    int far = skipped_before(&habit, HBRT_POLL_VAIN);
    assert(far == (1 << (SKIPPED_IN_VAIN + 2)) - 1 && skipped_before(&habit, HBRT_POLL_PAID) == far);
    for (int n = 0; n < 9; n++) assert(skipped_before(&habit, HBRT_POLL_PAID) == 0);
    skipped_before(&habit, HBRT_POLL_VAIN);
    assert(skipped_before(&habit, HBRT_POLL_VAIN) == far);
}

int main(void) {
    test_choice();
    test_times();
    test_habit();
    puts("good");
    return 0;
}
