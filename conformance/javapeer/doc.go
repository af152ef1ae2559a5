// Package javapeer runs a released Apache RocketMQ message store in a process of
// its own and drives it. tools/conformance builds the Java side; one process
// serves many stores.
package javapeer
