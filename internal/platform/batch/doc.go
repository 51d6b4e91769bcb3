// Package batch makes one call for all who ask while one before is under way.
//
//layout:floor=platform
package batch
