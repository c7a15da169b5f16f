//! Covering and overlapping of filters, and the covering forest.
