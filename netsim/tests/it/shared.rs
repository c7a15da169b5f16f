//! Brokers that hold each other's interest in one place for all do what they would do by themselves.

use enroute_netsim::{Run, schedule};
use std::io::Write;
use std::sync::{Arc, Mutex};

/// Keeps what is written.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("one thread").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Every output of every broker through random subscriptions, link cuts, crashes, restarts and partitions.
fn trace(seed: u64, share: bool) -> Vec<u8> {
    let scenario = schedule(seed, 12).expect("a good size");
    let kept = Kept::default();
    let mut run = Run::new(scenario, seed).expect("a good scenario");
    if share {
        run.world_mut().share_filters();
    }
    run.world_mut().set_trace(Box::new(kept.clone()));
    let report = run.run().expect("a good scenario");
    assert!(report.is_good(), "seed {seed}: {report}");
    let written = kept.0.lock().expect("one thread");
    written.clone()
}

#[test]
fn shared_interest_changes_no_word() {
    for seed in 40..46 {
        let (alone, shared) = (trace(seed, false), trace(seed, true));
        assert!(alone.len() > 100_000 && alone == shared, "seed {seed}: {} and {} bytes", alone.len(), shared.len());
    }
}
