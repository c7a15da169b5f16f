//! `enroute key`: the identity that a data directory holds.

use crate::failure::Failure;
use crate::output::{Output, tell};
use clap::Args;
use enroute_broker::BrokerId;
use enroute_node::{DataDir, read_keypair};
use serde_json::json;
use std::path::PathBuf;

/// The options.
#[derive(Args)]
pub(crate) struct Options {
    /// The data directory
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let failed = |error| Failure::new("no identity").because(&error);
    // Looking needs no lock, so that one can look while the broker runs.
    let keypair = match read_keypair(&options.data_dir).map_err(failed)? {
        Some(keypair) => keypair,
        None => {
            let keypair = DataDir::open(&options.data_dir).and_then(|dir| dir.keypair()).map_err(failed)?;
            tell(format_args!("created a new identity in {}", options.data_dir.display()));
            keypair
        }
    };
    let peer = keypair.public().to_peer_id().to_string();
    let id = BrokerId::of_peer(&peer).to_string();
    let mut output = Output::new();
    if options.json {
        output.json(&json!({ "id": id, "peer": peer }))?;
    } else {
        output.line(format_args!("id {id}\npeer {peer}"))?;
    }
    output.flush()
}
