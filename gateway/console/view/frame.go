package view

// Frame is what surrounds the content of each page. The zero Frame has no
// navigation, for a reader who may not manage.
type Frame struct {
	Root   string  // the address of the folder that has notify/, relative to the page
	Places []Place // of the navigation; none for a reader who may not manage
	User   string  // who is logged in; "" if unknown
}

// Place is an entry of the navigation.
type Place struct {
	Name    string
	Address string // relative to the page
	Here    bool   // the page is in this place
	Trouble string // what is wrong there, such as "2 down"; "" for nothing
}

// Trouble reports whether something is wrong in a place.
func (f Frame) Trouble() bool {
	for _, p := range f.Places {
		if p.Trouble != "" {
			return true
		}
	}
	return false
}
