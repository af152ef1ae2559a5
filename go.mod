module github.com/stratalog/stratalog

go 1.26
