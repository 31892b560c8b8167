// Package message has the types that everything below the adapters uses for a message: where it
// goes, its state, its result, and why the gateway does not accept it. It knows neither HTTP nor
// any other way in which messages arrive.
package message
