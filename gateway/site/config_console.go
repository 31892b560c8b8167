package site

// Managers are those who may manage: use the console and, if configs has manage,
// read and change saved keys.
type Managers struct {
	Open  bool     // everybody may who can send the request
	Named []string // users; none for every user and every client with a certificate
}
