package api

//go:generate ../scripts/buf generate
