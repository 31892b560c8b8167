package site

// Push are the settings of devices, checked and with defaults.
type Push struct {
	Contact string   // "" for the public URL
	Who     string   // one of the values of devices
	Max     int      // of a key
	Hosts   []string // of further push services
}
