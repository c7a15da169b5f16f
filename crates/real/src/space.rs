//! Where a broker is on the network: on loopback, or in a network namespace of its own.
//!
//! A namespace has one interface, whose other end is outside of it, where the proxies are. So its broker can reach nobody
//! but them, and nobody can reach it but they and the clients.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

/// Namespaces that a run can have: an octet numbers them.
const MOST: usize = 250;

/// A broker's place; a namespace is gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Space {
    /// Where the broker listens.
    pub(crate) inside: IpAddr,
    /// Where the proxies listen that it dials.
    pub(crate) outside: IpAddr,
    namespace: Option<String>,
}

impl Space {
    /// Loopback, with everybody else.
    pub(crate) fn loopback() -> Space {
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Space { inside: here, outside: here, namespace: None }
    }

    /// A namespace for the broker of this number, of private addresses that differ from run to run.
    pub(crate) fn namespace(number: usize) -> io::Result<Space> {
        let process = std::process::id();
        if number >= MOST {
            return Err(io::Error::other(format!("more than {MOST} namespaces")));
        }
        let [_, .., run] = (process % 64).to_be_bytes();
        let address = |last| Ipv4Addr::new(10, 128 + run, number as u8, last);
        let (outside, inside) = (address(1), address(2));
        let name = format!("enroute-{process}-{number}");
        // Fifteen letters at most.
        let (near, far) = (format!("e{process:x}n{number}"), format!("e{process:x}f{number}"));
        ip(&["netns", "add", &name])?;
        let space = Space { inside: inside.into(), outside: outside.into(), namespace: Some(name.clone()) };
        ip(&["link", "add", &near, "type", "veth", "peer", "name", &far, "netns", &name])?;
        ip(&["addr", "add", &format!("{outside}/30"), "dev", &near])?;
        ip(&["link", "set", &near, "up"])?;
        ip(&["-n", &name, "addr", "add", &format!("{inside}/30"), "dev", &far])?;
        ip(&["-n", &name, "link", "set", &far, "up"])?;
        ip(&["-n", &name, "link", "set", "lo", "up"])?;
        Ok(space)
    }

    /// What stands before a program on the command line to run it there. It becomes that program, under the same process id.
    pub(crate) fn within(&self) -> Vec<String> {
        let namespace = self.namespace.iter();
        namespace.flat_map(|name| ["ip", "netns", "exec", name].map(str::to_owned)).collect()
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        if let Some(name) = &self.namespace {
            // It takes its interface with it, once its last process is gone. Nothing can be done if it stays.
            let _ = ip(&["netns", "del", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> io::Result<()> {
    let output = Command::new("ip").args(arguments).output();
    let output = output.map_err(|error| io::Error::other(format!("`ip`, which makes namespaces: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("ip {}: {} (namespaces are for root)", arguments.join(" "), said.trim())))
}
