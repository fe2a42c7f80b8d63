//! All widths against one element at a time; casts, copies and selection against their definitions.

#![expect(unsafe_code, reason = "calls inner loops on raw buffers")]

use std::ffi::c_char;

use super::chain::{self, Action, Ends, Link};
use super::lanes::Width;
use super::*;

/// Numbers of all sizes, with the special ones in between.
fn doubles(count: usize, seed: u64) -> Vec<f64> {
    const SPECIAL: [f64; 8] = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0, -1.0, 5e-324];
    let mut state = seed;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bits = state >> 33;
            if bits.is_multiple_of(5) { SPECIAL[(bits / 5 % 8) as usize] } else { (bits as f64 - 1e9) / 37.0 }
        })
        .collect()
}

unsafe fn call(function: LoopFunction, data: &[*mut u8], strides: &[isize], count: usize, auxdata: usize) {
    let data: Vec<*mut c_char> = data.iter().map(|pointer| pointer.cast()).collect();
    let length = count.cast_signed();
    // SAFETY: the caller's.
    let code = unsafe {
        function(ptr::null(), data.as_ptr(), &raw const length, strides.as_ptr(), ptr::without_provenance_mut(auxdata))
    };
    assert_eq!(code, 0);
}

fn bits(values: &[f64]) -> Vec<u64> {
    // Which of two NaNs an operation returns is the processor's affair; that it is one is not.
    values.iter().map(|value| if value.is_nan() { u64::MAX } else { value.to_bits() }).collect()
}

#[test]
fn all_widths_agree() {
    let unary = ["sqrt", "reciprocal", "square", "sign", "negative", "absolute"].map(|ufunc| (ufunc, 1));
    let binary =
        ["add", "subtract", "multiply", "divide", "maximum", "minimum", "fmax", "fmin"].map(|ufunc| (ufunc, 2));
    for (ufunc, inputs) in unary.into_iter().chain(binary) {
        let types = vec![Number::F64; inputs + 1];
        for count in [1, 7, 8, 31, 32, 100, 300] {
            for strides in [[8, 8], [0, 8], [8, 0], [16, 8]] {
                let mut operands = [doubles(2 * count, 1), doubles(2 * count, 2)];
                let mut results = Width::available().map(|width| {
                    let function = arithmetic::function(width, ufunc, &types).expect("in the table");
                    // Wherever vectors begin, it is not there.
                    let mut output = vec![0.0; count + 1];
                    let mut data: Vec<*mut u8> =
                        operands.iter_mut().map(|operand| operand.as_mut_ptr().cast()).collect();
                    data.truncate(inputs);
                    data.push(output[1..].as_mut_ptr().cast());
                    let mut steps = strides[..inputs].to_vec();
                    steps.push(8);
                    // SAFETY: the operands are long enough for their strides.
                    unsafe { call(function, &data, &steps, count, 0) };
                    bits(&output[1..])
                });
                let widest = results.next().expect("there is always a width");
                assert!(results.all(|result| result == widest), "{ufunc} of {count} along {strides:?}");
            }
        }
    }
}

#[test]
fn chains_do_what_their_operations_do() {
    let actions = [
        Action::Multiply,
        Action::Add,
        Action::SubtractFrom,
        Action::Square,
        Action::DivideInto,
        Action::AddTo,
        Action::Sqrt,
        Action::Negative,
        Action::MultiplyBy,
        Action::Subtract,
        Action::Divide,
        Action::Reciprocal,
        Action::Absolute,
        Action::Sign,
        Action::Copy,
    ];
    for count in [1, 9, 64, 130] {
        let (first, operand) = (doubles(count, 3), doubles(count, 4));
        for length in 1..=actions.len() {
            let links: Vec<Link> = actions[..length]
                .iter()
                .enumerate()
                .map(|(place, action)| Link {
                    action: *action,
                    operand: operand.as_ptr().cast(),
                    repeats: place % 3 == 2,
                })
                .collect();
            let expected: Vec<f64> = (0..count)
                .map(|index| {
                    links.iter().fold(first[index], |value, link| {
                        let other = operand[if link.repeats { 0 } else { index }];
                        act(link.action, value, other)
                    })
                })
                .collect();
            for width in Width::available() {
                let mut output = vec![0.0; count];
                let ends = Ends {
                    first: first.as_ptr().cast(),
                    first_repeats: false,
                    output: output.as_mut_ptr().cast(),
                    count,
                };
                // SAFETY: all operands have `count` elements.
                unsafe { chain::function_of_width(width, 8)(&ends, &links) };
                assert_eq!(bits(&output), bits(&expected), "{length} actions on {count} elements, {width:?}");
            }
        }
    }
}

fn act(action: Action, value: f64, other: f64) -> f64 {
    match action {
        Action::Add => value + other,
        Action::AddTo => other + value,
        Action::Subtract => value - other,
        Action::SubtractFrom => other - value,
        Action::Multiply => value * other,
        Action::MultiplyBy => other * value,
        Action::Divide => value / other,
        Action::DivideInto => other / value,
        Action::Square => value * value,
        Action::Sqrt => value.sqrt(),
        Action::Reciprocal => 1.0 / value,
        Action::Negative => -value,
        Action::Absolute => value.abs(),
        Action::Sign if value == 0.0 => 0.0,
        Action::Sign if value.is_nan() => value,
        Action::Sign => value.signum(),
        Action::Copy => value,
    }
}

fn cast_one<S: Copy, T: Copy + Default>(from: Number, to: Number, value: S) -> T {
    let kernel = cast(from, to).expect("all numbers convert");
    let (mut source, mut target) = (value, T::default());
    let data = [(&raw mut source).cast(), (&raw mut target).cast()];
    let strides = [from.bytes().cast_signed(), to.bytes().cast_signed()];
    // SAFETY: one element of each type.
    unsafe { call(kernel.function, &data, &strides, 1, kernel.auxdata.addr()) };
    target
}

#[test]
fn casts_round_and_truncate_as_c_does() {
    assert_eq!(cast_one::<f64, i32>(Number::F64, Number::I32, -2.9), -2);
    assert_eq!(cast_one::<f64, u8>(Number::F64, Number::U8, 258.7), 2);
    assert_eq!(cast_one::<f64, u64>(Number::F64, Number::U64, 1.5e19), 15_000_000_000_000_000_000);
    assert_eq!(cast_one::<f64, u8>(Number::F64, Number::Bool, f64::NAN), 1);
    assert_eq!(cast_one::<f64, u8>(Number::F64, Number::Bool, -0.0), 0);
    assert_eq!(cast_one::<i64, f32>(Number::I64, Number::F32, i64::MAX), 9.223_372e18);
    assert_eq!(cast_one::<i64, i8>(Number::I64, Number::I8, 0x1ff), -1);
    assert_eq!(cast_one::<[f64; 2], f32>(Number::C128, Number::F32, [2.5, 7.0]), 2.5);
    assert_eq!(cast_one::<u16, [f32; 2]>(Number::U16, Number::C64, 9), [9.0, 0.0]);
    assert_eq!(cast_one::<[f32; 2], u8>(Number::C64, Number::Bool, [0.0, -1.0]), 1);
    assert_eq!(cast_one::<f64, u16>(Number::F64, Number::F16, 1.0 + 1.0 / 2048.0), 0x3c00);
    assert_eq!(cast_one::<f64, u16>(Number::F64, Number::F16, 65520.0), 0x7c00);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn floats_out_of_range_become_what_the_processor_gives() {
    assert_eq!(cast_one::<f64, i32>(Number::F64, Number::I32, 1e20), i32::MIN);
    assert_eq!(cast_one::<f64, i64>(Number::F64, Number::I64, f64::NAN), i64::MIN);
    assert_eq!(cast_one::<f32, u8>(Number::F32, Number::U8, 1e20), 0);
}

#[test]
fn halves_survive_the_way_there_and_back() {
    for bits in 0..=u16::MAX {
        let single = half::to_f32(bits);
        assert_eq!(half::from_f32(single), bits);
        if !single.is_nan() {
            assert_eq!(half::from_f64(f64::from(single)), bits);
            assert_eq!(half::to_f64(bits), f64::from(single));
        }
    }
}

#[test]
fn copies_swaps_and_selections_of_any_size() {
    for bytes in [1_usize, 2, 3, 4, 5, 8, 12, 16, 32] {
        let count = 11;
        let mut source: Vec<u8> = (0..2 * count * bytes).map(|index| index as u8).collect();
        let mut other: Vec<u8> = source.iter().map(|byte| !byte).collect();
        let mut condition: Vec<u8> = (0..count).map(|index| u8::from(index % 3 == 0) * 7).collect();
        let (size, wide) = (bytes.cast_signed(), 2 * bytes.cast_signed());
        let (a, b, picks) = (source.as_mut_ptr(), other.as_mut_ptr(), condition.as_mut_ptr());
        let [mut copied, mut swapped, mut selected] = [0; 3].map(|byte| vec![byte; count * bytes]);
        // SAFETY: all operands have `count` elements along their strides.
        unsafe {
            call(copy(bytes).function, &[a, copied.as_mut_ptr()], &[wide, size], count, bytes);
            call(byteswap(bytes).function, &[a, swapped.as_mut_ptr()], &[wide, size], count, bytes);
            let data = [picks, a, b, selected.as_mut_ptr()];
            call(select(bytes).function, &data, &[1, wide, wide, size], count, bytes);
        }
        for index in 0..count {
            let place = index * bytes..(index + 1) * bytes;
            let from = 2 * index * bytes..(2 * index + 1) * bytes;
            assert_eq!(copied[place.clone()], source[from.clone()]);
            let backwards: Vec<u8> = source[from.clone()].iter().rev().copied().collect();
            assert_eq!(swapped[place.clone()], backwards);
            let chosen = if index % 3 == 0 { &source } else { &other };
            assert_eq!(selected[place], chosen[from]);
        }
    }
}

#[test]
fn rows_together_give_what_the_loop_gives_row_after_row() {
    for name in ["add", "multiply", "maximum", "minimum"] {
        for (count, number) in [(1, 3), (7, 9), (8, 17), (33, 8), (64, 20), (100, 19)] {
            let gap = count + 3;
            let rows = doubles(gap * number, 5);
            let mut expected = doubles(count, 6);
            let function = arithmetic::function(Width::Plain, name, &[Number::F64; 3]).expect("in the table");
            let first: *mut u8 = rows.as_ptr().cast_mut().cast();
            for row in 0..number {
                let total: *mut u8 = expected.as_mut_ptr().cast();
                // SAFETY: each row has `count` elements, which are only read.
                unsafe { call(function, &[total, first.add(row * gap * 8), total], &[8, 8, 8], count, 0) };
            }
            for width in Width::available() {
                let fold = rows::of_width(width, &format!("{name} dd->d")).expect("in the table");
                let mut found = doubles(count, 6);
                // SAFETY: as above.
                unsafe {
                    fold(
                        found.as_mut_ptr().cast(),
                        &rows::Rows { first, step: (gap * 8) as isize, rows: number, count },
                    );
                }
                assert_eq!(bits(&found), bits(&expected), "{name} {count} {number} {width:?}");
            }
        }
    }
}

#[test]
fn quiet_loops_never_touch_the_floating_point_status() {
    // Bits of numbers that are none and raise an event where they are looked at as numbers, of infinities and of the least ones.
    const PATTERNS: [u64; 4] = [0x7ff0_0000_0000_0001, 0x7f80_0001_ff80_0001, 0xfff0_0000_0000_0000, 1];
    let values: Vec<u64> =
        (0..256).map(|index| PATTERNS[index * index % 4].rotate_left(index as u32 % 3 * 32)).collect();
    let picks: Vec<u8> = (0..values.len()).map(|index| u8::from(index % 3 == 0)).collect();
    for bytes in [1, 2, 4, 8, 16] {
        let mut output = values.clone();
        let (from, to) = (values.as_ptr().cast_mut().cast(), output.as_mut_ptr().cast());
        let (count, step) = (values.len() * 8 / bytes, bytes.cast_signed());
        let loops = [
            (copy(bytes), vec![from, to], vec![step; 2]),
            (select(bytes), vec![picks.as_ptr().cast_mut(), from, from, to], vec![1, step, step, step]),
        ];
        for (quiet, data, strides) in loops {
            assert!(quiet.is_quiet, "{}", quiet.name);
            let count = count.min(picks.len());
            // SAFETY: all operands have that many elements.
            let events = crate::execute::watched(|| unsafe { call(quiet.function, &data, &strides, count, bytes) });
            assert_eq!(events, 0, "{}", quiet.name);
        }
    }
}
