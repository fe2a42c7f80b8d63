//! Every draw gives the same items and the same state afterwards, however it is shared. That they are NumPy's is tested
//! from Python, against NumPy (`tests/random`).

#![expect(unsafe_code, reason = "hands memory to fills")]

use super::*;

fn engines() -> Vec<Engine> {
    let mut key = [1u32; MT19937_WORDS];
    for at in 1..MT19937_WORDS {
        key[at] = key[at - 1].wrapping_mul(1_812_433_253).wrapping_add(at as u32);
    }
    let pcg64 =
        |permutation| Engine::Pcg64(Pcg64 { state: 0x1234_5678 << 64 | 99, increment: 77 << 64 | 5, permutation });
    vec![
        pcg64(Permutation::XslRr),
        pcg64(Permutation::Dxsm),
        Engine::Philox(Philox { counter: [1, 2, 3, 4], key: [5, 6], buffer: [7, 8, 9, 10], used: 3 }),
        Engine::Sfc64(Sfc64([1, 2, 3, 4])),
        Engine::Mt19937(Box::new(Mt19937 { key, used: 619 })),
    ]
}

fn draws() -> Vec<Draw> {
    let affine = Finish::Affine { location: 1.5, scale: 0.25 };
    let mut draws = vec![
        Draw::Uniform(Finish::Standard),
        Draw::Uniform(affine),
        Draw::UniformF32,
        Draw::Normal(Finish::LogAffine { location: 1.5, scale: 0.25 }),
        Draw::NormalF32,
        Draw::Exponential(Finish::Scaled { scale: 3.0 }),
        Draw::ExponentialF32,
        Draw::InverseExponential,
        Draw::InverseExponentialF32,
        Draw::LegacyExponential(Finish::Standard),
        Draw::LegacyNormal(affine),
        Draw::Booleans,
    ];
    for bounding in [Bounding::Multiply, Bounding::Mask] {
        for (bytes, range) in [
            (1, 6),
            (1, 255),
            (2, 40_000),
            (2, 1023),
            (4, 2),
            (4, u64::from(u32::MAX)),
            (8, 999),
            (8, 1 << 40),
            (8, u64::MAX),
        ] {
            draws.push(Draw::Integers { bytes, low: 100, range, bounding });
        }
    }
    draws
}

/// All items and the state afterwards, by `workers` threads.
fn made(draw: &Draw, state: &State, items: usize, words: u64, workers: usize) -> (Vec<u64>, State) {
    let fill = Fill::with_stretches(draw, state.clone(), items as u64, words);
    let mut memory = vec![0u64; items + 1];
    let out = memory.as_mut_ptr() as usize;
    if fill.slices() {
        for part in 0..workers {
            let range = items * part / workers..items * (part + 1) / workers;
            let place = (out + range.start * draw.item_bytes()) as *mut u8;
            // SAFETY: the memory has room for eight bytes an item.
            unsafe { fill.slice(range.start as u64..range.end as u64, place) };
        }
    } else {
        std::thread::scope(|scope| {
            for _ in 0..workers {
                // SAFETY: the memory has room for eight bytes an item, and outlives the scope.
                scope.spawn(|| unsafe { fill.work(out as *mut u8) });
            }
        });
    }
    (memory, fill.after().expect("all items are made"))
}

#[test]
fn sharing_changes_nothing() {
    for engine in engines() {
        for waiting in [false, true] {
            let state = State {
                spare_half: SpareHalf { waiting: waiting && engine.word_bytes() == 8, value: 0x8765_4321 },
                spare_normal: waiting.then_some(0.5),
                engine: engine.clone(),
            };
            for draw in draws() {
                for items in [0, 1, 2, 3, 31, 32, 33, 1001] {
                    let whole = made(&draw, &state, items, 4096, 1);
                    for (words, workers) in [(2, 1), (2, 3), (4, 2), (64, 3)] {
                        let shared = made(&draw, &state, items, words, workers);
                        assert_eq!(
                            shared, whole,
                            "{draw:?}, {items} items, {words} words, {workers} workers, {state:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_kept_of_a_draw_is_as_in_the_whole() {
    for engine in engines() {
        let state = State { engine, spare_half: SpareHalf::default(), spare_normal: Some(0.5) };
        for draw in draws() {
            let (whole, end) = made(&draw, &state, 1001, 64, 1);
            let bytes = draw.item_bytes();
            for kept in [0..1001, 0..1, 1..400, 333..333, 700..1001] {
                let fill = Fill::with_stretches(&draw, state.clone(), 1001, 64);
                let mut memory = vec![0u64; 1002];
                // SAFETY: the memory has room for eight bytes an item.
                unsafe { fill.work_on(memory.as_mut_ptr().cast(), &(kept.start as u64..kept.end as u64)) };
                let all = |memory: &[u64]| -> Vec<u8> { memory.iter().flat_map(|word| word.to_le_bytes()).collect() };
                let (kept_bytes, expected) = (all(&memory), all(&whole));
                let range = kept.start * bytes..kept.end * bytes;
                assert_eq!(kept_bytes[range.clone()], expected[range.clone()], "{draw:?} {kept:?}");
                assert!(kept_bytes[range.end..].iter().all(|byte| *byte == 0), "{draw:?} {kept:?}");
                assert_eq!(fill.after().expect("all items are made"), end, "{draw:?} {kept:?}");
            }
        }
    }
}

#[test]
fn a_draw_in_two_parts_is_one_draw() {
    // True of draws that keep nothing back within a call: not of those that read parts of a 32-bit word.
    for engine in engines() {
        let state = State { engine, spare_half: SpareHalf::default(), spare_normal: None };
        for draw in draws() {
            if draw.item_bytes() < 4 {
                continue;
            }
            let (whole, end) = made(&draw, &state, 1000, 64, 2);
            let (first, middle) = made(&draw, &state, 333, 64, 2);
            let (second, last) = made(&draw, &middle, 667, 64, 2);
            let bytes = |memory: &[u64], items: usize| -> Vec<u8> {
                let all: Vec<u8> = memory.iter().flat_map(|word| word.to_le_bytes()).collect();
                all[..items * draw.item_bytes()].to_vec()
            };
            assert_eq!([bytes(&first, 333), bytes(&second, 667)].concat(), bytes(&whole, 1000), "{draw:?}");
            assert_eq!(last, end, "{draw:?}");
        }
    }
}

#[test]
fn loops_make_any_items_in_any_order() {
    let engine = engines().swap_remove(0);
    let state = State { engine, spare_half: SpareHalf { waiting: true, value: 9 }, spare_normal: None };
    for draw in draws() {
        let items = 500;
        let item_bytes = draw.item_bytes();
        let (whole, _) = made(&draw, &state, items, 64, 1);
        let whole: Vec<u8> = whole.iter().flat_map(|word| word.to_le_bytes()).collect();
        let Some(kernel) = Fill::new(&draw, state.clone(), items as u64).into_loop(item_bytes, "draw") else {
            continue;
        };
        let forward: Vec<u32> = (0..items as u32).collect();
        let broken: Vec<u32> = forward.iter().map(|number| number * 7 % items as u32).collect();
        for (numbers, block, gap) in [(&forward, 64, 1), (&forward, 33, 3), (&broken, 64, 1), (&broken, 500, 2)] {
            let mut out = vec![0u64; items * gap];
            let strides = [4, (item_bytes * gap) as isize];
            for first in (0..items).step_by(block) {
                let count = block.min(items - first) as isize;
                let place = out.as_mut_ptr().cast::<u8>().wrapping_add(first * item_bytes * gap);
                let data = [numbers[first..].as_ptr().cast_mut().cast(), place.cast()];
                // SAFETY: a number and room for an item at each of `count` places along the strides.
                let code = unsafe {
                    (kernel.function)(kernel.context, data.as_ptr(), &raw const count, strides.as_ptr(), kernel.auxdata)
                };
                assert_eq!(code, 0);
            }
            let out: Vec<u8> = out.iter().flat_map(|word| word.to_le_bytes()).collect();
            for (place, number) in numbers.iter().enumerate() {
                let got = &out[place * item_bytes * gap..][..item_bytes];
                assert_eq!(got, &whole[*number as usize * item_bytes..][..item_bytes], "{draw:?}, item {number}");
            }
        }
    }
}
