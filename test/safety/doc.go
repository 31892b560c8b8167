// Package safety tests that the gateway, as it is built and run, keeps the
// promises of docs/security.md. Its destinations, its clients and its name
// server are all on loopback.
//
//	SAFETY_RACE=1 go test ./test/safety
//
// builds the gateway with the race detector and fails where that finds
// something.
package safety
