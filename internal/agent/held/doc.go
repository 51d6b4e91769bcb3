// Package held has the devices of ports and uplinks: it finds or makes them, prepares them, keeps what was set on them,
// and gives them back as they were. What is done to a device is on disk before, so that a crash loses no setting.
//
//layout:floor=process
package held
