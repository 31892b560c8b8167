package view

import (
	"encoding/json"
	"sync"
)

// Worker returns the service worker of devices. It begins with the script shared with their page.
var Worker = sync.OnceValue(func() []byte { return []byte(readFile("device_store.js") + readFile("push.js")) })

// Manifest is the manifest of the app that a phone makes from the page of a device. See
// https://www.w3.org/TR/appmanifest/.
type Manifest struct {
	ID         string         `json:"id"` // the same for all invitations to a key
	Name       string         `json:"name"`
	ShortName  string         `json:"short_name"`
	Start      string         `json:"start_url"` // relative to the manifest; it contains the invitation
	Scope      string         `json:"scope"`
	Display    string         `json:"display"`
	Background string         `json:"background_color"`
	Theme      string         `json:"theme_color"`
	Icons      []ManifestIcon `json:"icons"`
}

// ManifestIcon is an icon in a manifest.
type ManifestIcon struct {
	Source  string `json:"src"`
	Sizes   string `json:"sizes"`
	Type    string `json:"type"`
	Purpose string `json:"purpose"`
}

// NewManifest returns the manifest for a key.
func NewManifest(key, id, start string) ([]byte, error) {
	m := Manifest{
		ID: id, Name: "Notify " + key, ShortName: key, Start: start, Scope: "./", Display: "standalone",
		Background: "#f4f6f8", Theme: "#1f77c9",
	}
	for _, purpose := range []string{"any", "maskable"} {
		m.Icons = append(m.Icons,
			ManifestIcon{"icon-192.png", "192x192", "image/png", purpose},
			ManifestIcon{"icon-512.png", "512x512", "image/png", purpose},
			ManifestIcon{"icon.svg", "any", "image/svg+xml", purpose})
	}
	return json.Marshal(m)
}
