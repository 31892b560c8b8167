// Package safety tests that the program keeps the promises of docs/promises.md.
// The tests build and run the gateway, and reach it as a client does. All its
// destinations, its clients and its name server are on loopback.
//
//	go test -race ./test/safety
//
// also builds the gateway with the race detector, and fails if that reports a
// race.
package safety
