// Package mqtt publishes messages to topics of MQTT servers, in versions 3.1,
// 3.1.1 and 5.0 of the protocol.
package mqtt
