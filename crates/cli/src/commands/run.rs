//! `enroute run`: a broker until ctrl-C.

use super::config;
use crate::arguments;
use crate::failure::Failure;
use crate::output::{Output, tell};
use crate::runtime::{Interrupts, multi_thread};
use clap::Args;
use enroute_node::{Multiaddr, Node, NodeConfig, PeerId};
use std::path::PathBuf;

/// Where a broker listens if nothing is said, and where the other commands look for one.
pub(crate) const DEFAULT_LISTEN: &str = "/ip4/127.0.0.1/tcp/7440";

/// The options. Each goes before what the configuration file says.
#[derive(Args)]
pub(crate) struct Options {
    /// A configuration in TOML; `enroute config example` prints one
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Accept brokers and clients at this address; repeatable [default: /ip4/127.0.0.1/tcp/7440]
    #[arg(long, value_name = "MULTIADDR", value_parser = arguments::address)]
    listen: Vec<Multiaddr>,
    /// Keep a link to the broker at this address, with or without /p2p/ID; repeatable. One member of a network is enough to join it
    #[arg(long, value_name = "MULTIADDR", value_parser = arguments::address)]
    peer: Vec<Multiaddr>,
    /// Tell others this address too; repeatable
    #[arg(long, value_name = "MULTIADDR", value_parser = arguments::address)]
    announce: Vec<Multiaddr>,
    /// Link to the given peers only, instead of choosing further ones among the members of the network
    #[arg(long)]
    no_mesh: bool,
    /// Run a leaf broker, which hangs off the broker at one of these addresses at a time: the first that can be had
    #[arg(long, value_name = "MULTIADDR", num_args = 1.., value_parser = arguments::address, conflicts_with = "peer")]
    leaf: Vec<Multiaddr>,
    /// Keep the identity and all else that must outlive a restart here; created at the first start
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Accept this peer as a broker, and no others but the configured peers or uplinks; repeatable
    #[arg(long, value_name = "PEER_ID", value_parser = arguments::peer_id)]
    allow: Vec<PeerId>,
}

pub(crate) fn run(options: Options) -> Result<(), Failure> {
    let config = configuration(options)?;
    multi_thread(async {
        let mut interrupts = Interrupts::new()?;
        let node = Node::builder().config(config).start().await;
        let node = node.map_err(|error| Failure::new("the broker does not start").because(&error))?;
        announce(&node)?;
        let stopped = tokio::select! {
            () = interrupts.next() => None,
            reason = node.stopped() => Some(reason),
        };
        match stopped {
            None => {
                tell("shutting down; again to stop at once");
                tokio::select! {
                    () = node.shutdown() => Ok(()),
                    () = interrupts.next() => Err(Failure::Interrupted),
                }
            }
            Some(reason) => Err(Failure::new(format!("the broker has stopped: {reason}"))),
        }
    })
}

fn configuration(options: Options) -> Result<NodeConfig, Failure> {
    let mut config = match &options.config {
        Some(file) => config::load(file)?,
        None => NodeConfig::default(),
    };
    if !options.listen.is_empty() {
        config.listen = options.listen;
    }
    if config.listen.is_empty() {
        let default = DEFAULT_LISTEN.parse().map_err(|error| Failure::new("the default address").because(&error))?;
        config.listen.push(default);
    }
    // Either way the file's word on what kind of broker this is counts no more.
    if !options.peer.is_empty() {
        (config.peers, config.leaf) = (options.peer, Vec::new());
    }
    if !options.leaf.is_empty() {
        (config.leaf, config.peers) = (options.leaf, Vec::new());
    }
    if !options.announce.is_empty() {
        config.announce = options.announce;
    }
    config.mesh &= !options.no_mesh;
    if !options.allow.is_empty() {
        config.allow = options.allow;
    }
    config.data_dir = options.data_dir.or(config.data_dir);
    Ok(config)
}

/// Prints who the broker is and where, for people and for scripts that wait for it.
fn announce(node: &Node) -> Result<(), Failure> {
    let mut output = Output::new();
    output.line(format_args!("id {}", node.id()))?;
    output.line(format_args!("peer {}", node.peer_id()))?;
    for address in node.addresses() {
        output.line(format_args!("listening {address}"))?;
    }
    match output.flush() {
        // Nobody reads, but a broker serves others than its starter.
        Err(Failure::BrokenPipe) => Ok(()),
        other => other,
    }
}
