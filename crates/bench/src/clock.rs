//! The time that this thread has computed, which other programs on the machine do not add to.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// How much processor time the calling thread has had since it began. One system call.
pub fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time() {
        let start = thread_time();
        let mut random = crate::random::Random::new(1, 0);
        while thread_time() == start {
            std::hint::black_box(random.next_u64());
        }
        assert!(thread_time() > start);
    }
}
