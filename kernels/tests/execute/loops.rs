//! Inner loops for the tests, in NumPy's form.

#![expect(unsafe_code, reason = "inner loops read and write through raw pointers")]

use std::ffi::{c_char, c_int, c_void};

use legate_kernels::program::Loop;

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

pub(crate) fn add() -> Loop {
    Loop::of(add_f64, "add dd->d")
}

pub(crate) fn subtract() -> Loop {
    Loop::of(sub_f64, "subtract dd->d")
}

pub(crate) fn maximum() -> Loop {
    Loop::of(max_f64, "maximum dd->d")
}

pub(crate) fn less() -> Loop {
    Loop::of(less_f64, "less dd->?")
}
