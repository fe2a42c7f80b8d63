//! Several exact float operations as one loop: a value goes from operation to operation in vector registers.
//!
//! Promises the bits and events of the operations done one by one: each rounds by itself (never a fused multiply-add), and
//! `trace` finds which of them raised what. Which operations of a program may be joined is decided in `execute`.

#![expect(unsafe_code, reason = "reads and writes elements at computed addresses")]

use super::lanes::{Lanes, Width};

/// What is done to the value: `value + operand` and so on; those that end in `From`, `To` or `By` name the other order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Add,
    AddTo,
    Subtract,
    SubtractFrom,
    Multiply,
    MultiplyBy,
    Divide,
    DivideInto,
    Square,
    Sqrt,
    Reciprocal,
    Negative,
    Absolute,
    Sign,
    /// Nothing: the value is only stored.
    Copy,
}

impl Action {
    /// The action of a ufunc on a value that is its first (or only) operand, or else its second.
    pub(crate) fn of_ufunc(ufunc: &str, value_is_first: bool) -> Option<Action> {
        let (first, second) = match ufunc {
            "add" => (Action::Add, Action::AddTo),
            "subtract" => (Action::Subtract, Action::SubtractFrom),
            "multiply" => (Action::Multiply, Action::MultiplyBy),
            "divide" | "true_divide" => (Action::Divide, Action::DivideInto),
            "square" => (Action::Square, Action::Square),
            "sqrt" => (Action::Sqrt, Action::Sqrt),
            "reciprocal" => (Action::Reciprocal, Action::Reciprocal),
            "negative" => (Action::Negative, Action::Negative),
            "absolute" => (Action::Absolute, Action::Absolute),
            "sign" => (Action::Sign, Action::Sign),
            "copy" => (Action::Copy, Action::Copy),
            _ => return None,
        };
        Some(if value_is_first { first } else { second })
    }
}

/// One operation on the value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) action: Action,
    /// The other operand, where the action has one.
    pub(crate) operand: *const u8,
    /// Whether the other operand is one element for all.
    pub(crate) repeats: bool,
}

/// Operands of a chain: contiguous, but for repeated ones.
#[derive(Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) first: *const u8,
    pub(crate) first_repeats: bool,
    pub(crate) output: *mut u8,
    pub(crate) count: usize,
}

/// Runs a chain.
///
/// Safety: all operands must be there and aligned, the output apart from the others.
pub(crate) type ChainFunction = unsafe fn(&Ends, &[Link]);

/// The function for elements of 4 or 8 bytes.
pub(crate) fn function(item_bytes: usize) -> ChainFunction {
    function_of_width(Width::best(), item_bytes)
}

pub(super) fn function_of_width(width: Width, item_bytes: usize) -> ChainFunction {
    match (width, item_bytes) {
        (Width::Plain, 4) => plain::<f32>,
        (Width::Plain, _) => plain::<f64>,
        #[cfg(target_arch = "x86_64")]
        (Width::Avx2, 4) => avx2::<super::lanes::Single8>,
        #[cfg(target_arch = "x86_64")]
        (Width::Avx2, _) => avx2::<super::lanes::Double4>,
        #[cfg(target_arch = "x86_64")]
        (Width::Avx512, 4) => avx512::<super::lanes::Single16>,
        #[cfg(target_arch = "x86_64")]
        (Width::Avx512, _) => avx512::<super::lanes::Double8>,
    }
}

unsafe fn plain<V: Lanes<Item = V>>(ends: &Ends, links: &[Link]) {
    // SAFETY: the caller's.
    unsafe { run::<V>(ends, links) };
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2<V: Lanes>(ends: &Ends, links: &[Link])
where
    V::Item: Lanes<Item = V::Item>,
{
    // SAFETY: the caller's; the width was found on this processor.
    unsafe { run::<V>(ends, links) };
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
unsafe fn avx512<V: Lanes>(ends: &Ends, links: &[Link])
where
    V::Item: Lanes<Item = V::Item>,
{
    // SAFETY: the caller's; the width was found on this processor.
    unsafe { run::<V>(ends, links) };
}

#[inline(always)]
unsafe fn run<V: Lanes>(ends: &Ends, links: &[Link])
where
    V::Item: Lanes<Item = V::Item>,
{
    let mut done = 0;
    // SAFETY: the caller's.
    unsafe {
        // Eight vectors together: enough that finding the next action costs little.
        while done + 8 * V::COUNT <= ends.count {
            eight_vectors::<V>(ends, links, done);
            done += 8 * V::COUNT;
        }
        while done + V::COUNT <= ends.count {
            one_vector::<V>(ends, links, done);
            done += V::COUNT;
        }
        while done < ends.count {
            one_vector::<V::Item>(ends, links, done);
            done += 1;
        }
    }
}

/// Defines a function that takes some vectors, from element `first` on, through the whole chain. Each vector is a variable of
/// its own: an array of them would go through memory at every action.
macro_rules! strip {
    ($name:ident: $($value:ident $place:literal)*) => {
        #[inline(always)]
        unsafe fn $name<V: Lanes>(ends: &Ends, links: &[Link], first: usize) {
            // SAFETY: the caller's.
            unsafe {
                let input = ends.first.cast::<V::Item>();
                $(let mut $value = if ends.first_repeats {
                    V::splat(input.read())
                } else {
                    V::load(input.add(first + $place * V::COUNT))
                };)*
                for link in links {
                    let operand = link.operand.cast::<V::Item>();
                    macro_rules! before {
                        ($method:ident) => {
                            if link.repeats {
                                let other = V::splat(operand.read());
                                $($value = $value.$method(other);)*
                            } else {
                                $($value = $value.$method(V::load(operand.add(first + $place * V::COUNT)));)*
                            }
                        };
                    }
                    macro_rules! after {
                        ($method:ident) => {
                            if link.repeats {
                                let other = V::splat(operand.read());
                                $($value = other.$method($value);)*
                            } else {
                                $($value = V::load(operand.add(first + $place * V::COUNT)).$method($value);)*
                            }
                        };
                    }
                    match link.action {
                        Action::Add => before!(add),
                        Action::AddTo => after!(add),
                        Action::Subtract => before!(sub),
                        Action::SubtractFrom => after!(sub),
                        Action::Multiply => before!(mul),
                        Action::MultiplyBy => after!(mul),
                        Action::Divide => before!(div),
                        Action::DivideInto => after!(div),
                        Action::Square => { $($value = $value.mul($value);)* }
                        Action::Sqrt => { $($value = $value.sqrt();)* }
                        Action::Reciprocal => { $($value = V::one().div($value);)* }
                        Action::Negative => { $($value = $value.neg();)* }
                        Action::Absolute => { $($value = $value.abs();)* }
                        Action::Sign => { $($value = $value.sign();)* }
                        Action::Copy => {}
                    }
                }
                let output = ends.output.cast::<V::Item>().add(first);
                $($value.store(output.add($place * V::COUNT));)*
            }
        }
    };
}

strip!(one_vector: a 0);
strip!(eight_vectors: a 0 b 1 c 2 d 3 e 4 f 5 g 6 h 7);

/// Runs a chain again, an operation at a time over short strips, and calls `done(n)` after operation n of each strip.
///
/// # Safety
/// As for [`ChainFunction`].
pub(crate) unsafe fn trace(item_bytes: usize, ends: &Ends, links: &[Link], done: impl FnMut(usize)) {
    // SAFETY: the caller's.
    unsafe {
        if item_bytes == 4 { trace_items::<f32>(ends, links, done) } else { trace_items::<f64>(ends, links, done) }
    }
}

unsafe fn trace_items<T: Lanes<Item = T>>(ends: &Ends, links: &[Link], mut done: impl FnMut(usize)) {
    for element in 0..ends.count {
        // SAFETY: the caller's.
        unsafe {
            let input = ends.first.cast::<T>().add(if ends.first_repeats { 0 } else { element });
            let mut value = input.read();
            for (number, link) in links.iter().enumerate() {
                let mut result = value;
                let step = Ends {
                    first: (&raw const value).cast(),
                    first_repeats: true,
                    output: (&raw mut result).cast(),
                    count: 1,
                };
                let operand = link.operand.cast::<T>().wrapping_add(if link.repeats { 0 } else { element });
                one_vector::<T>(&step, &[Link { operand: operand.cast(), ..*link }], 0);
                value = std::hint::black_box(result);
                done(number);
            }
        }
    }
}
