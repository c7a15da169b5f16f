//! The Enindex and its reference engines: events to matching subscriptions.
