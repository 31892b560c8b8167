// Package safety holds no program, only tests of one: that the gateway, as it
// is built and run, keeps the promises that the section Security of the README
// makes. Its destinations, its clients and its name server are all on
// loopback.
//
//	SAFETY_RACE=1 go test ./test/safety
//
// builds the gateway with the race detector and fails where that finds
// something.
package safety
