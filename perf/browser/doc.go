// Package browser looks at the pages of package report in a real browser. It has
// tests only, and is a module of its own, so that what drives the browser is no
// dependency of the store.
//
// The tests need Chromium and skip without it, or fail where CI is set.
// STRATALOG_SCREENSHOTS names a directory for the pictures that they take.
package browser
