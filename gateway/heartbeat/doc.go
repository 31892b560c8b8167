// Package heartbeat watches the beats that keys expect, and tells a watchdog
// that the gateway works.
package heartbeat
