// Package signin keeps the session of a service that signs in, and renews it
// when the service no longer accepts it.
package signin
