//! What shards send each other, as text: `sender -> receiver: bytes`, one line for each message, for programs whose messages are known.
//!
//! Four shards as threads, arrays of 16 x 16 elements of 8 bytes. Messages by which shards agree on events (one byte for each launch)
//! are left out; they are counted apart.

mod interpreter;

use std::sync::{Arc, Mutex};

use interpreter::{Interpreter, Step, wait};
use legate_runtime::transport::{Channel, Receive, Send, Stop, Threads, Transport, TransportError};
use legate_runtime::view::{Axes, View};
use legate_runtime::{Handle, Mapper, Operand, Privilege, Runtime, Work};
use smallvec::smallvec;

const SIDE: usize = 16;
const ROW: isize = SIDE as isize * 8;
const INNER: usize = SIDE - 2;
const SHARDS: usize = 4;
/// Shorter messages are agreements: no window here has as many launches.
const SHORTEST_BYTES: usize = 16;

/// A transport that tells what it sends.
struct Told {
    threads: Threads,
    lines: Mutex<Vec<(usize, usize, usize)>>,
}

impl Transport for Told {
    fn shard(&self) -> usize {
        self.threads.shard()
    }

    fn shards(&self) -> usize {
        self.threads.shards()
    }

    fn exchange_while(
        &self,
        channel: Channel,
        sends: &[Send<'_>],
        receives: &mut [Receive<'_>],
        look: &mut dyn FnMut(),
    ) -> Result<(), TransportError> {
        let told = sends.iter().filter(|send| send.bytes.len() >= SHORTEST_BYTES);
        let told = told.map(|send| (self.shard(), send.to, send.bytes.len()));
        self.lines.lock().expect("no test panics with the lock").extend(told);
        self.threads.exchange_while(channel, sends, receives, look)
    }
}

/// A shard's program under way.
struct Shard {
    runtime: Runtime<Interpreter>,
    told: Arc<Told>,
    /// What each stage has sent.
    stages: Vec<Vec<(usize, usize, usize)>>,
}

fn view(row: isize, column: isize) -> View {
    View { offset: row * ROW + column * 8, strides: smallvec![ROW, 8], item_bytes: 8 }
}

/// All of a field of the inner elements.
fn own() -> View {
    View { offset: 0, strides: smallvec![INNER as isize * 8, 8], item_bytes: 8 }
}

/// One element, over two axes.
fn element() -> View {
    View { offset: 0, strides: smallvec![0, 0], item_bytes: 8 }
}

impl Shard {
    fn new(threads: Threads, most_steps: usize) -> Shard {
        let told = Arc::new(Told { threads, lines: Mutex::default() });
        let mapper = Mapper {
            cpus: 1,
            processors: 1,
            min_tile: 1,
            most_steps,
            window: 64,
            run_ahead: 2,
            fusion: true,
            blocks: false,
            memory_limit: 1 << 30,
            show_plan: false,
        };
        Shard { runtime: Runtime::new(Interpreter, mapper, told.clone()), told, stages: Vec::new() }
    }

    fn field(&self) -> Handle {
        self.runtime.field(SIDE * SIDE * 8).expect("there is room")
    }

    /// A field of the inner elements alone.
    fn inner(&self) -> Handle {
        self.runtime.field(INNER * INNER * 8).expect("there is room")
    }

    fn launch(&self, work: Work, shape: [usize; 2], adds: bool, output: (&Handle, View), inputs: &[(&Handle, View)]) {
        let operand = |(handle, view): &(&Handle, View), privilege| {
            let field = handle.field().clone();
            Operand { field, view: view.clone(), privilege }
        };
        let privilege = if adds { Privilege::ReadWrite } else { Privilege::Write };
        let inputs = inputs.iter().map(|input| operand(input, Privilege::Read));
        let operands = std::iter::once(operand(&output, privilege)).chain(inputs).collect();
        let domain: Axes<usize> = shape.iter().copied().collect();
        self.runtime.launch("step".into(), work, domain, operands, Step { constant: 3, adds });
    }

    fn map(&self, shape: [usize; 2], output: (&Handle, View), inputs: &[(&Handle, View)]) {
        self.launch(Work::Map, shape, false, output, inputs);
    }

    /// `output += input`.
    fn add(&self, shape: [usize; 2], output: (&Handle, View), input: (&Handle, View)) {
        self.launch(Work::Map, shape, true, output, &[input]);
    }

    fn total(&self, output: &Handle, inputs: &[(&Handle, View)]) {
        self.launch(Work::Total, [SIDE, SIDE], false, (output, element()), inputs);
    }

    /// A field that lives on all shards, four rows on each.
    fn spread(&self) -> Handle {
        let (source, field) = (self.field(), self.field());
        self.map([SIDE, SIDE], (&field, view(0, 0)), &[(&source, view(0, 0))]);
        field
    }

    /// Ends a stage.
    fn stage(&mut self) {
        wait(&self.runtime);
        self.stages.push(std::mem::take(&mut *self.told.lines.lock().expect("no test panics with the lock")));
    }

    /// A sweep of the 5-point stencil.
    fn sweep(&self, grid: &Handle) {
        let inner = [INNER, INNER];
        let sums = [self.inner(), self.inner(), self.inner()];
        self.map(inner, (&sums[0], own()), &[(grid, view(0, 1)), (grid, view(2, 1))]);
        self.map(inner, (&sums[1], own()), &[(&sums[0], own()), (grid, view(1, 0))]);
        self.map(inner, (&sums[2], own()), &[(&sums[1], own()), (grid, view(1, 2))]);
        self.map(inner, (grid, view(1, 1)), &[(&sums[2], own())]);
    }
}

/// Runs a program on all shards; the messages of each stage as text, in the order of sender and receiver. Arrays are shared out.
fn plans(program: impl Fn(&mut Shard) + Sync) -> Vec<String> {
    plans_within(usize::MAX, program)
}

/// As [`plans`]; arrays are shared out until that has cost so many steps more than it has saved.
fn plans_within(most_steps: usize, program: impl Fn(&mut Shard) + Sync) -> Vec<String> {
    let program = &program;
    let shards: Vec<Vec<Vec<(usize, usize, usize)>>> = std::thread::scope(|scope| {
        let run = |threads| {
            scope.spawn(move || {
                let mut shard = Shard::new(threads, most_steps);
                program(&mut shard);
                shard.stages
            })
        };
        let running: Vec<_> = Threads::job(SHARDS, &Arc::new(Stop::default())).into_iter().map(run).collect();
        running.into_iter().map(|shard| shard.join().expect("the shard's thread does not panic")).collect()
    });
    let stages = 0..shards[0].len();
    let text = |stage: usize| {
        let mut lines: Vec<_> = shards.iter().flat_map(|stages| stages[stage].clone()).collect();
        lines.sort_unstable();
        let lines = lines.iter().map(|(from, to, bytes)| format!("{from} -> {to}: {bytes}"));
        lines.collect::<Vec<_>>().join("\n")
    };
    stages.map(text).collect()
}

/// One message to each neighbour, of a row without one end: short gaps between values are carried along.
const HALO: &str = "0 -> 1: 120\n1 -> 0: 120\n1 -> 2: 120\n2 -> 1: 120\n2 -> 3: 120\n3 -> 2: 120";
/// Pairs of shards, in each of two steps.
const BUTTERFLY: [(usize, usize); 8] = [(0, 1), (0, 2), (1, 0), (1, 3), (2, 0), (2, 3), (3, 1), (3, 2)];

fn butterfly(bytes: usize) -> String {
    BUTTERFLY.map(|(from, to)| format!("{from} -> {to}: {bytes}")).join("\n")
}

/// Longest part of the total of a full array, in a group with so many members, as the interpreter packs it.
fn part_bytes(members: usize) -> usize {
    (SIDE * SIDE + members) * 8
}

#[test]
fn a_stencil_sweep_sends_each_neighbour_one_message() {
    let plans = plans(|shard| {
        let grid = shard.spread();
        shard.stage();
        for _ in 0..2 {
            shard.sweep(&grid);
            shard.stage();
        }
    });
    assert_eq!(plans, ["", HALO, HALO]);
}

#[test]
fn two_sweeps_at_once_send_each_neighbour_one_message() {
    let plans = plans(|shard| {
        let grid = shard.spread();
        shard.stage();
        for _ in 0..2 {
            shard.sweep(&grid);
            shard.sweep(&grid);
            shard.stage();
        }
    });
    // Two whole rows.
    let halo = HALO.replace("120", "256");
    assert_eq!(plans, ["", &halo, &halo]);
}

#[test]
fn an_aligned_chain_sends_nothing() {
    let plans = plans(|shard| {
        let (a, b, c) = (shard.spread(), shard.spread(), shard.field());
        shard.map([SIDE, SIDE], (&c, view(0, 0)), &[(&a, view(0, 0)), (&b, view(0, 0))]);
        shard.add([SIDE, SIDE], (&a, view(0, 0)), (&c, view(0, 0)));
        shard.add([4, 4], (&b, view(2, 2)), (&c, view(2, 3)));
        shard.stage();
    });
    assert_eq!(plans, [""]);
}

#[test]
fn a_written_row_draws_no_other_rows_to_where_it_lives() {
    let plans = plans(|shard| {
        let (grid, other, copy, source) = (shard.spread(), shard.spread(), shard.field(), shard.field());
        shard.stage();
        // The last row, element by element, in one group with rows of another field.
        let row = View { offset: 15 * ROW, strides: smallvec![8, ROW], item_bytes: 8 };
        shard.map([SIDE, 1], (&grid, row), &[(&source, element())]);
        shard.map([SIDE, SIDE], (&copy, view(0, 0)), &[(&other, view(0, 0))]);
        shard.stage();
    });
    assert_eq!(plans, ["", "0 -> 3: 32\n1 -> 3: 32\n2 -> 3: 32"]);
}

#[test]
fn a_full_sum_is_one_exchange_of_two_steps() {
    let plans = plans(|shard| {
        let (grid, sum) = (shard.spread(), shard.field());
        shard.stage();
        shard.total(&sum, &[(&grid, view(0, 0))]);
        shard.stage();
        assert_eq!(shard.runtime.traffic().hops.load(std::sync::atomic::Ordering::Relaxed), 2);
    });
    assert_eq!(plans, [String::new(), butterfly(part_bytes(1))]);
}

#[test]
fn a_sum_over_the_cut_axis_is_one_pipelined_chain() {
    let plans = plans(|shard| {
        let (grid, sums) = (shard.spread(), shard.runtime.field(SIDE * 8).expect("there is room"));
        shard.stage();
        let columns = View { offset: 0, strides: smallvec![0, 8], item_bytes: 8 };
        shard.launch(Work::Accumulate, [SIDE, SIDE], false, (&sums, columns), &[(&grid, view(0, 0))]);
        shard.stage();
    });
    // Four blocks of four columns from each shard to the next, and the last one's sums to everybody.
    let chain: Vec<String> = (0..3).flat_map(|from| vec![format!("{from} -> {}: 32", from + 1); 4]).collect();
    let mut lines = chain;
    lines.extend(["2 -> 0: 128", "3 -> 1: 128", "3 -> 2: 128"].map(str::to_owned));
    lines.sort_unstable();
    assert_eq!(plans, [String::new(), lines.join("\n")]);
}

#[test]
fn an_unchanged_halo_is_sent_once() {
    let plans = plans(|shard| {
        let grid = shard.spread();
        shard.stage();
        let read = |shard: &Shard| {
            let (sum, result) = (shard.inner(), shard.inner());
            shard.map([INNER, INNER], (&sum, own()), &[(&grid, view(0, 1)), (&grid, view(2, 1))]);
            shard.map([INNER, INNER], (&result, own()), &[(&sum, own()), (&grid, view(1, 1))]);
            result
        };
        for _ in 0..3 {
            let kept = read(shard);
            shard.stage();
            drop(kept);
        }
    });
    assert_eq!(plans, ["", HALO, "", ""]);
}

#[test]
fn an_iteration_of_conjugate_gradients_sends_a_halo_and_two_totals() {
    let plans = plans(|shard| {
        let all = [SIDE, SIDE];
        let full = || view(0, 0);
        let (x, r, p) = (shard.spread(), shard.spread(), shard.spread());
        shard.stage();
        for _ in 0..2 {
            let (q, alpha, beta) = (shard.field(), shard.field(), shard.field());
            shard.map(all, (&q, full()), &[(&p, full())]);
            shard.add([SIDE - 1, SIDE], (&q, view(1, 0)), (&p, full()));
            shard.add([SIDE - 1, SIDE], (&q, full()), (&p, view(1, 0)));
            shard.add([SIDE, SIDE - 1], (&q, view(0, 1)), (&p, full()));
            shard.add([SIDE, SIDE - 1], (&q, full()), (&p, view(0, 1)));
            shard.total(&alpha, &[(&p, full()), (&q, full())]);
            shard.stage();
            shard.add(all, (&x, full()), (&p, full()));
            shard.map(all, (&r, full()), &[(&q, full()), (&alpha, element())]);
            shard.total(&beta, &[(&r, full()), (&r, full())]);
            shard.stage();
            shard.map(all, (&p, full()), &[(&r, full()), (&beta, element())]);
            shard.stage();
        }
    });
    let halo = HALO.replace("120", "128");
    let mut first: Vec<String> = halo.lines().map(str::to_owned).collect();
    first.extend(butterfly(part_bytes(6)).lines().map(str::to_owned));
    let order = |line: &String| {
        let numbers: Vec<usize> = line.split([' ', ':']).filter_map(|word| word.parse().ok()).collect();
        numbers
    };
    first.sort_by_key(order);
    let (first, second) = (first.join("\n"), butterfly(part_bytes(3)));
    assert_eq!(plans, ["", &first, &second, "", &first, &second, ""]);
}

#[test]
fn an_array_that_columns_are_summed_of_is_whole_after_some() {
    let column = [SIDE, 1];
    let plans = plans_within(4, |shard| {
        let grid = shard.spread();
        shard.stage();
        for number in 0..6 {
            let sum = shard.field();
            shard.launch(Work::Total, column, false, (&sum, element()), &[(&grid, view(0, number))]);
            shard.stage();
        }
        shard.map(column, (&grid, view(0, 0)), &[(&grid, view(0, 1))]);
        shard.map([SIDE, SIDE], (&shard.field(), view(0, 0)), &[(&grid, view(0, 0))]);
        shard.stage();
    });
    let sum = butterfly((SIDE + 1) * 8);
    // Neighbours swap their four rows, then pairs of neighbours their eight.
    let rows = BUTTERFLY.map(|(from, to)| format!("{from} -> {to}: {}", from.abs_diff(to) * 4 * SIDE * 8)).join("\n");
    assert_eq!(plans, ["", &sum, &sum, &sum, &rows, "", "", ""]);
}
