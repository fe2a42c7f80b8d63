//! Floating-point events reach the entry of the step that raised them, whatever was joined.
#![expect(unsafe_code, reason = "runs programs on buffers of the test's own")]

use legate_kernels::execute::{DIVIDE_BY_ZERO, Executable, FlagTable, INVALID, OVERFLOW, Scratch};
use legate_kernels::loops;
use legate_kernels::program::{Access, Arg, Element, Memory, Number, Pass, Program, Split, Step, Tile};
use smallvec::{SmallVec, smallvec};

fn access(buffer: usize) -> Access {
    let (offset, row_stride, inner_strides) = (0, 8, SmallVec::new());
    Access { memory: Memory::Buffer(buffer), offset, row_stride, inner_strides, item_bytes: 8, aligned: true }
}

fn apply(ufunc: &str, inputs: &[Arg], output: Arg, flags: usize) -> Step {
    let types = vec![Number::F64; inputs.len() + 1];
    let kernel = loops::lookup(ufunc, &types).expect("a loop of ours");
    Step::Apply { kernel, inputs: SmallVec::from_slice(inputs), outputs: smallvec![output], flags }
}

/// `sqrt(((a / b) * c) * c)`, one entry per step, with these values at one place and ones elsewhere.
fn events(a: f64, b: f64, c: f64) -> Vec<u8> {
    let count = 700;
    let register = Arg::Register;
    let pass = Pass {
        rows: 0..count,
        inner: SmallVec::new(),
        accesses: (0..4).map(access).collect(),
        registers: vec![8; 3],
        steps: vec![
            apply("divide", &[Arg::Access(0), Arg::Access(1)], register(0), 0),
            apply("multiply", &[register(0), Arg::Access(2)], register(1), 1),
            apply("multiply", &[register(1), Arg::Access(2)], register(2), 2),
            apply("sqrt", &[register(2)], Arg::Access(3), 3),
        ],
    };
    let program = Program {
        rows: count,
        buffers: 4,
        read_soon: Vec::new(),
        slots: Vec::new(),
        constants: vec![Element([0; 32])],
        totals: Vec::new(),
        flags: 4,
        split: Split::Rows,
        passes: vec![pass],
    };
    let mut buffers = vec![vec![1.0_f64; count]; 4];
    for (buffer, value) in buffers.iter_mut().zip([a, b, c]) {
        buffer[597] = value;
    }
    let bases: Vec<*mut u8> = buffers.iter_mut().map(|buffer| buffer.as_mut_ptr().cast()).collect();
    let flags = FlagTable::new(4);
    let tile = Tile { rows: 0..count, inner: None };
    let executable = Executable::compile(program);
    // SAFETY: every buffer holds `count` doubles.
    unsafe { executable.run(&bases, &tile, &mut Scratch::new(), &flags) }.expect("no loop fails");
    (0..4).map(|entry| flags.get(entry)).collect()
}

#[test]
fn a_quiet_program_raises_nothing() {
    assert_eq!(events(2.0, 3.0, 5.0), [0, 0, 0, 0]);
}

#[test]
fn each_step_has_its_own_events() {
    assert_eq!(events(1.0, 0.0, 5.0), [DIVIDE_BY_ZERO, 0, 0, 0]);
    assert_eq!(events(1.0, 0.0, 0.0), [DIVIDE_BY_ZERO, INVALID, 0, 0]);
    assert_eq!(events(1e200, 1.0, 1e200), [0, OVERFLOW, 0, 0]);
    assert_eq!(events(1e-100, 1.0, 1e300), [0, 0, OVERFLOW, 0]);
    assert_eq!(events(-1.0, 1.0, 1.0), [0, 0, 0, INVALID]);
}

/// `sqrt(a)` where a byte says so, of -1 at one place, which is selected or not: the events, and whether that place was written.
fn masked_events(selected: &[usize]) -> (u8, bool) {
    let (count, bad) = (700, 597);
    let mask = Access { row_stride: 1, item_bytes: 1, ..access(1) };
    let Step::Apply { kernel, inputs, outputs, flags } = apply("sqrt", &[Arg::Access(0)], Arg::Access(2), 0) else {
        unreachable!("a step that applies a loop")
    };
    let pass = Pass {
        rows: 0..count,
        accesses: vec![access(0), mask, access(2)],
        steps: vec![Step::Masked { mask: Arg::Access(1), kernel, inputs, outputs, flags }],
        ..Pass::default()
    };
    let program = Program {
        rows: count,
        buffers: 3,
        read_soon: Vec::new(),
        slots: Vec::new(),
        constants: Vec::new(),
        totals: Vec::new(),
        flags: 1,
        split: Split::Rows,
        passes: vec![pass],
    };
    let (mut values, mut bytes, mut results) = (vec![4.0_f64; count], vec![0_u8; count], vec![7.0_f64; count]);
    values[bad] = -1.0;
    selected.iter().for_each(|place| bytes[*place] = 1);
    let bases: [*mut u8; 3] = [values.as_mut_ptr().cast(), bytes.as_mut_ptr(), results.as_mut_ptr().cast()];
    let (flags, tile) = (FlagTable::new(1), Tile { rows: 0..count, inner: None });
    // SAFETY: every buffer holds `count` elements.
    unsafe { Executable::compile(program).run(&bases, &tile, &mut Scratch::new(), &flags) }.expect("no loop fails");
    for (place, result) in results.iter().enumerate().filter(|(place, _)| *place != bad) {
        assert_eq!(*result, if selected.contains(&place) { 2.0 } else { 7.0 });
    }
    (flags.get(0), results[bad].is_nan())
}

#[test]
fn only_selected_elements_raise_events() {
    assert_eq!(masked_events(&[]), (0, false));
    assert_eq!(masked_events(&[3, 17, 596, 598, 699]), (0, false));
    assert_eq!(masked_events(&(0..700).filter(|place| *place != 597).collect::<Vec<_>>()), (0, false));
    assert_eq!(masked_events(&[3, 597]), (INVALID, true));
    assert_eq!(masked_events(&(0..700).collect::<Vec<_>>()), (INVALID, true));
}
