// Package mqtttest helps tests that run an MQTT broker.
package mqtttest

import mqtt "github.com/mochi-mqtt/server/v2"

// Close closes a broker. Close of the broker itself looks for clients with a lock that it takes
// twice, and waits for ever if a client ends between; after this, it finds none.
func Close(b *mqtt.Server) {
	b.Listeners.CloseAll(func(string) {
		for _, c := range b.Clients.GetAll() {
			c.Stop(nil)
		}
	})
	_ = b.Close() // nothing can be done about it
}
