//go:build !linux

package load

func describeSystem(*Env, string) {}
