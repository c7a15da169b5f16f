//! The protocol core of an Enroute broker: no sockets, no clock, no async.
