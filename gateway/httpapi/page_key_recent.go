package httpapi

const ErrQueueUnread = "The queue cannot be read at the moment."
