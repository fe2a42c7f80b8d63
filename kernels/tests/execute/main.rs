//! The executor against a naive interpreter of the same programs: random layouts, tiles, slots, reductions.

#![expect(unsafe_code, reason = "runs programs on raw buffers")]

mod events;
mod interpreter;
mod loops;
mod programs;
mod woven;

use interpreter::interpret;
use legate_kernels::execute::{Executable, FlagTable, Joining, Partials, Scratch};
use legate_kernels::program::{Program, Split, Tile};
use programs::{Case, Random};

/// Tiles that cut the program into `count` parts at random places.
fn tiles(random: &mut Random, program: &Program, count: usize) -> Vec<Tile> {
    let length = match program.split {
        Split::Rows => program.rows,
        Split::Inner(axis) => program.passes[0].inner[axis],
        Split::Whole => return vec![Tile { rows: 0..program.rows, inner: None }],
    };
    let mut cuts: Vec<usize> = (1..count).map(|_| random.below(length + 1)).collect();
    cuts.extend([0, length]);
    cuts.sort_unstable();
    cuts.windows(2)
        .map(|cut| match program.split {
            Split::Inner(_) => Tile { rows: 0..program.rows, inner: Some(cut[0]..cut[1]) },
            Split::Rows | Split::Whole => Tile { rows: cut[0]..cut[1], inner: None },
        })
        .collect()
}

fn check(seed: u64, make: impl Fn(&mut Random) -> Case) {
    let mut random = Random::new(seed);
    let mut scratch = Scratch::new();
    for number in 0..300 {
        let case = make(&mut random);
        let text = case.program.to_string();
        let (expected, expected_totals) = interpret(&case);
        let joining = if number % 3 == 0 { Joining::Chains } else { Joining::Code };
        let executable = Executable::compile_with(case.program.clone(), joining);
        let mut buffers = case.buffers.clone();
        let bases: Vec<*mut u8> = buffers.iter_mut().map(|buffer| buffer.as_mut_ptr().cast()).collect();
        let flags = FlagTable::new(case.program.flags);
        let count = 1 + random.below(7);
        let partials: Vec<Partials> = tiles(&mut random, &case.program, count)
            .iter()
            .map(|tile| {
                // SAFETY: the generator makes accesses that lie within their buffers, and tiles run one by one.
                unsafe { executable.run(&bases, tile, &mut scratch, &flags) }.expect("no loop fails")
            })
            .collect();
        let totals = executable.finish(&partials, &flags).expect("no loop fails");
        assert_eq!(totals, expected_totals, "totals of case {number} in {count} tiles\n{text}");
        for (index, (found, wanted)) in buffers.iter().zip(&expected).enumerate() {
            assert!(found == wanted, "buffer {index} of case {number} in {count} tiles\n{text}");
        }
    }
}

#[test]
fn chains_over_any_layout() {
    check(1, |random| programs::chain(random, false));
}

#[test]
fn chains_with_long_runs() {
    check(2, |random| programs::chain(random, true));
}

#[test]
fn reductions_of_rows_feed_later_passes() {
    check(3, |random| programs::softmax(random, false));
    check(4, |random| programs::softmax(random, true));
}

#[test]
fn sums_of_short_lines() {
    check(7, programs::short_lines);
}

#[test]
fn passes_over_parts_of_arrays() {
    check(8, programs::parts);
    check(9, programs::parts);
}

#[test]
fn totals_over_tiles() {
    check(5, programs::totals);
}

#[test]
fn accumulation_over_the_rows_and_over_an_inner_axis() {
    check(6, programs::accumulation);
}
