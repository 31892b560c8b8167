// Package servicetest tests services against golden files, stand-ins for HTTP APIs and servers on
// loopback. It is for tests of the catalogue, and for tests of services that other modules
// register.
//
// The shortest test of a service is one that runs its golden file:
//
//	func TestGolden(t *testing.T) { servicetest.Golden(t) }
package servicetest
