package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// protobuf does what protoc would: it compiles a schema that imports nothing,
// hands it to the plugins, and writes the files that they return below out.
func protobuf(schema, out string) error {
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), schema)
	if err != nil {
		return err
	}
	file := protoutil.ProtoFromFileDescriptor(files[0])
	if err := plugin("protoc-gen-go", "paths=source_relative", schema, file, out); err != nil {
		return err
	}
	return plugin("protoc-gen-go-vtproto", "paths=source_relative,features=marshal+size+unmarshal+unmarshal_unsafe+pool,"+
		"pool=github.com/stratalog/stratalog/perf/peers/codecs/vt.Record,"+
		"pool=github.com/stratalog/stratalog/perf/peers/codecs/vt.Fixed", schema, file, out)
}

// plugin runs one plugin of protoc.
func plugin(name, parameter, schema string, file *descriptorpb.FileDescriptorProto, out string) error {
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{schema},
		Parameter:      &parameter,
		ProtoFile:      []*descriptorpb.FileDescriptorProto{file},
	})
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "tool", name)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(request), os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(answer, &response); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if response.Error != nil {
		return fmt.Errorf("%s: %w", name, errors.New(response.GetError()))
	}
	for _, f := range response.File {
		if err := os.WriteFile(filepath.Join(out, f.GetName()), []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
