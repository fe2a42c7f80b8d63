//! Inner loops for the tests, in NumPy's form.

#![expect(unsafe_code, reason = "inner loops read and write through raw pointers")]

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use legate_kernels::program::{Loop, LoopFunction};

macro_rules! binary {
    ($name:ident, $input:ty, $output:ty, $operation:expr) => {
        unsafe extern "C" fn $name(
            _context: *const c_void,
            data: *const *mut c_char,
            length: *const isize,
            strides: *const isize,
            _auxdata: *mut c_void,
        ) -> c_int {
            let operation: fn($input, $input) -> $output = $operation;
            // SAFETY: the invariant of `Loop`.
            unsafe {
                for index in 0..*length {
                    let a = (*data).offset(*strides * index).cast::<$input>();
                    let b = (*data.add(1)).offset(*strides.add(1) * index).cast::<$input>();
                    let target = (*data.add(2)).offset(*strides.add(2) * index).cast::<$output>();
                    assert!(a.is_aligned() && b.is_aligned() && target.is_aligned());
                    *target = operation(*a, *b);
                }
            }
            0
        }
    };
}

binary!(add_f64, f64, f64, |a, b| a + b);
binary!(sub_f64, f64, f64, |a, b| a - b);
binary!(max_f64, f64, f64, |a, b| if a >= b { a } else { b });
binary!(less_f64, f64, u8, |a, b| u8::from(a < b));

fn named(name: &str, function: LoopFunction) -> Loop {
    Loop {
        function,
        context: ptr::null(),
        auxdata: ptr::null_mut(),
        name: Arc::from(name),
        is_quiet: false,
        owner: None,
    }
}

pub(crate) fn add() -> Loop {
    named("add dd->d", add_f64)
}

pub(crate) fn subtract() -> Loop {
    named("subtract dd->d", sub_f64)
}

pub(crate) fn maximum() -> Loop {
    named("maximum dd->d", max_f64)
}

pub(crate) fn less() -> Loop {
    named("less dd->?", less_f64)
}
