//! Frames between brokers, and between client and broker.
