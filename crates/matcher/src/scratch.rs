//! What matching writes while it runs, kept apart from the engines so that they are matched through `&self`.

/// Reusable buffers of one thread. Any engine takes any scratch, whatever it served before.
///
/// Everything that must be fresh for each event carries the number of the event it was written for, so that nothing is
/// cleared in between: this is how marks are "restored".
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    pub(crate) marks: Marks,
    /// The event as the production engine's slots see it.
    pub(crate) reading: crate::engine::Reading,
    pub(crate) counts: Counts,
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// How many events the production engine was asked about.
    pub(crate) events: u32,
    /// How many subscriptions (or parts of them) the last event was tested against.
    pub(crate) tested: usize,
}

/// Which subscriptions or owners an event has reported.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    event: u32,
    /// By subscription or owner: the event that reported it.
    reported: Vec<u32>,
}

impl Marks {
    /// Starts an event on an engine with at most so many subscriptions or owners.
    pub(crate) fn begin(&mut self, reported: usize) {
        if self.event == u32::MAX {
            self.reported.clear();
            self.event = 0;
        }
        self.event += 1;
        if self.reported.len() < reported {
            self.reported.resize(reported, 0);
        }
    }

    pub(crate) fn is_reported(&self, number: u32) -> bool {
        self.reported[number as usize] == self.event
    }

    /// Whether this is the first report of the number for this event.
    pub(crate) fn report(&mut self, number: u32) -> bool {
        std::mem::replace(&mut self.reported[number as usize], self.event) != self.event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_an_earlier_event_survives_the_wrap_of_event_numbers() {
        let mut marks = Marks::default();
        // The second round has the number of the first again.
        for _ in 0..2 {
            marks.begin(1);
            assert_eq!(marks.event, 1);
            assert!(marks.report(0) && !marks.report(0) && marks.is_reported(0));
            marks.event = u32::MAX;
        }
    }
}
