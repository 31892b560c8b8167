package view

import "strconv"

// Frame surrounds the content of each page. The zero Frame has no navigation, for a reader who may
// not manage.
type Frame struct {
	Root   string  // the address of the folder with notify/, relative to the page
	Places []Place // places in the navigation; none for a reader who may not manage
	User   string  // who is logged in; "" if unknown
}

// Place is an entry of the navigation.
type Place struct {
	Name    string
	Address string // relative to the page
	Here    bool   // the page is in this place
	Counts  bool   // Count stands beside its name
	Count   int    // number of troubles
	Trouble string // the troubles, such as "2 destinations down"; "" for none
}

// Count returns the number of troubles, for the title and the icon of the page.
func (f Frame) Count() (n int) {
	for _, p := range f.Places {
		n += p.Count
	}
	return n
}

// IconCount returns the count, short enough for the icon of the page; "" for none.
func (f Frame) IconCount() string {
	switch n := f.Count(); {
	case n == 0:
		return ""
	case n > 9:
		return "9+"
	default:
		return strconv.Itoa(n)
	}
}
