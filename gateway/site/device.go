package site

// Scheme begins what a device is shown as. No URL can have it.
const Scheme = "device://"

// Place names a key among those of all sites and spaces.
type Place struct {
	Home string // where the key is defined
	Key  string // its name
}

// String returns the place as the name of records begins or ends with it.
func (p Place) String() string { return p.Home + "\x00" + p.Key }
