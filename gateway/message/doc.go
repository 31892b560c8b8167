// Package message has the words that everything below the adapters uses for a message: where it
// goes, what became of it, and why the gateway does not take it. It knows neither HTTP nor any
// other way in which messages come.
package message
