package health

import "heddle/internal/api"

// Writable says that a controller's directory takes nothing, as when its file system has become one that can only be
// read: no change is made then, and nothing is read from the disk that would show it. writes is nil where nobody knows.
func Writable(dir string, writes func() error) []api.HealthFinding {
	const check = "data-directory"
	if writes == nil {
		return nil
	}
	if err := writes(); err != nil {
		return []api.HealthFinding{finding(check, api.HealthWrong, "nothing can be written in "+dir+", so that this "+
			"controller takes no change: "+err.Error(), "see the kernel's log about the file system; hosts go on "+
			"meanwhile, and other controllers take changes")}
	}
	return []api.HealthFinding{fine(check, dir+" can be written")}
}
