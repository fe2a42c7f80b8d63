#![expect(unsafe_code, reason = "sets CPU masks and memory policies, and reads them back")]
//! Binds this process as its share says, before Python starts: threads and children inherit it.
//!
//! Promises that what the system made of it is read back, and that a difference is an error. Decides nothing (see `share`).

use std::ffi::OsString;
use std::io;
use std::mem::{MaybeUninit, size_of};

use crate::machine::{Machine, mask_of};
use crate::part::show_list;
use crate::share::{Policy, Share};

/// Bits of a mask of NUMA nodes: the kernel's largest number of nodes.
const NODE_BITS: usize = 1024;
/// Words of such a mask.
const NODE_WORDS: usize = NODE_BITS / libc::c_ulong::BITS as usize;
/// The kernel's names for memory policies: whatever it does by itself, one node first, these nodes only.
const MPOL_DEFAULT: libc::c_int = 0;
const MPOL_PREFERRED: libc::c_int = 1;
const MPOL_BIND: libc::c_int = 2;

/// Binds this process; gives the CPUs that it may run on then.
pub(crate) fn apply(share: &Share) -> Result<Vec<usize>, String> {
    if let Some(cpus) = &share.bound {
        bind_cpus(cpus).map_err(|error| format!("cannot bind to CPUs {}: {error}", show_list(cpus)))?;
        let now = mask_of(0).unwrap_or_default();
        if now != *cpus {
            return Err(format!(
                "asked for CPUs {}, but this process may use {} of them only",
                show_list(cpus),
                show_list(&now)
            ));
        }
    }
    let (mode, nodes) = match &share.policy {
        Policy::FirstTouch => return Ok(mask_of(0).unwrap_or_default()),
        Policy::Prefer(node) => (MPOL_PREFERRED, vec![*node]),
        Policy::Only(nodes) => (MPOL_BIND, nodes.clone()),
    };
    let refused = |error: io::Error| format!("cannot take memory from NUMA nodes {}: {error}", show_list(&nodes));
    set_policy(mode, &nodes).map_err(refused)?;
    let (now, own) = policy().map_err(refused)?;
    if (now, &own) != (mode, &nodes) {
        return Err(format!("asked for memory of NUMA nodes {}, but got {}", show_list(&nodes), show_list(&own)));
    }
    Ok(mask_of(0).unwrap_or_default())
}

/// Variables with which MPI libraries are told which cards to use: UCX by any name, Open MPI's TCP by an interface's.
pub(crate) fn variables_of_cards(share: &Share, machine: &Machine) -> Vec<(&'static str, OsString)> {
    if share.cards.is_empty() {
        return Vec::new();
    }
    let is_interface = |card: &&String| !machine.is_infiniband(card);
    // UCX wants a port with an InfiniBand card.
    let with_port = |card: &String| match machine.is_infiniband(card) && !card.contains(':') {
        true => format!("{card}:1"),
        false => card.clone(),
    };
    let ucx = share.cards.iter().map(with_port).collect::<Vec<_>>().join(",");
    let tcp = share.cards.iter().filter(is_interface).cloned().collect::<Vec<_>>().join(",");
    let mut variables = vec![("UCX_NET_DEVICES", ucx.into())];
    if !tcp.is_empty() {
        variables.push(("OMPI_MCA_btl_tcp_if_include", tcp.into()));
    }
    variables
}

fn bind_cpus(cpus: &[usize]) -> io::Result<()> {
    let mut mask = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: zeros are an empty mask; only places that it has are set.
    let failed = unsafe {
        let mask = mask.assume_init_mut();
        for &cpu in cpus.iter().filter(|&&cpu| cpu < libc::CPU_SETSIZE as usize) {
            libc::CPU_SET(cpu, mask);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), mask) != 0
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn set_policy(mode: libc::c_int, nodes: &[usize]) -> io::Result<()> {
    let mut mask = [0 as libc::c_ulong; NODE_WORDS];
    let bits = libc::c_ulong::BITS as usize;
    for &node in nodes.iter().filter(|&&node| node < NODE_BITS) {
        mask[node / bits] |= 1 << (node % bits);
    }
    // SAFETY: a mask of the number of bits given, which the kernel only reads; it counts one bit less.
    let failed = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask.as_ptr(), NODE_BITS + 1) != 0 };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// This thread's memory policy, and the nodes that it names.
fn policy() -> io::Result<(libc::c_int, Vec<usize>)> {
    let mut mode = MPOL_DEFAULT;
    let mut mask = [0 as libc::c_ulong; NODE_WORDS];
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: room for a mode and for a mask of the number of bits given; no address is asked about.
    let failed = unsafe {
        libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, mask.as_mut_ptr(), NODE_BITS + 1, none, 0) != 0
    };
    if failed {
        return Err(io::Error::last_os_error());
    }
    let bits = libc::c_ulong::BITS as usize;
    Ok((mode, (0..NODE_BITS).filter(|node| mask[node / bits] >> (node % bits) & 1 == 1).collect()))
}
