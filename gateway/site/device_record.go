package site

// DevicePlace returns the place of the devices of k at a site.
func (k *Key) DevicePlace(siteID string) Place {
	return Place{Home: k.Home(siteID), Key: k.Name}
}
