package dispatch

// Place names the key of a message among those of all sites and spaces.
func (d *Delivery) Place() string { return d.Home + "\x00" + d.Key }
