//! A fence that all ranks of a job reach before any of them sends: in Slurm, `MPI_Init` of Open MPI does not see to that.
//!
//! Open MPI ends `MPI_Init` with a PMIx fence that collects no data, and where Slurm serves PMIx such a fence waits for the ranks
//! of its own node only (seen with Slurm 22.05, PMIx 4.2 and Open MPI 4.1). A rank of another node then sends to one that is not
//! ready, which calls a function that is not there yet. A fence that collects data waits for all. Promises nothing outside of
//! Slurm, whose starters keep such fences; sends nothing itself.
#![expect(unsafe_code, reason = "PMIx is a C library, found in the process at run time")]

use std::ffi::{c_int, c_void};
use std::{env, ptr};

use libloading::os::unix::{Library, RTLD_NOW, Symbol};

/// What says that Slurm's srun started this process.
const STEP: &str = "SLURM_STEP_ID";
const LIBRARY: &str = "libpmix.so.2";
/// Attribute of a fence: everybody's data is to be there afterwards.
const COLLECT: &[u8] = b"pmix.collect";
/// `PMIX_BOOL`, the type of its value.
const BOOL: u16 = 1;
/// `PMIX_SUCCESS`.
const SUCCESS: c_int = 0;

/// `pmix_info_t` of the PMIx standard, versions 2 to 5.
#[repr(C)]
struct Info {
    key: [u8; 512],
    flags: u32,
    value: Value,
}

/// `pmix_value_t`, holding a truth value.
#[repr(C)]
struct Value {
    kind: u16,
    data: Union,
}

/// Room for the largest member of its union, aligned as it is.
#[repr(C, align(8))]
struct Union {
    flag: bool,
    rest: [u8; 31],
}

/// `PMIx_Fence(procs, nprocs, info, ninfo)`.
type Fence = unsafe extern "C" fn(*const c_void, usize, *const Info, usize) -> c_int;

/// Waits until all ranks have come here, where Slurm started them and PMIx serves them.
///
/// # Errors
/// The number of PMIx's error, as a text.
pub(crate) fn wait_for_all() -> Result<(), String> {
    if env::var_os(STEP).is_none() {
        return Ok(());
    }
    // SAFETY: a library that is loaded already is not initialised again.
    let Ok(library) = (unsafe { Library::open(Some(LIBRARY), RTLD_NOW | libc::RTLD_NOLOAD) }) else {
        return Ok(());
    };
    // SAFETY: the function's type is the standard's.
    let Ok(fence) = (unsafe { library.get::<Fence>(c"PMIx_Fence".to_bytes_with_nul()) }) else {
        return Ok(());
    };
    let fence: Symbol<Fence> = fence;
    let mut key = [0; 512];
    key[..COLLECT.len()].copy_from_slice(COLLECT);
    let info = Info { key, flags: 0, value: Value { kind: BOOL, data: Union { flag: true, rest: [0; 31] } } };
    // SAFETY: MPI has started PMIx and ends it later; no processes named means all, and the attribute outlives the call.
    let code = unsafe { fence(ptr::null(), 0, &raw const info, 1) };
    if code == SUCCESS { Ok(()) } else { Err(format!("the ranks could not wait for each other: PMIx's error {code}")) }
}
