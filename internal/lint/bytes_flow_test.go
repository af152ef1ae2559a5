package lint

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// handmade is one place where bytes are made by hand.
type handmade struct {
	at   token.Pos
	what string
}

// shape is what is known of the value of an expression, wherever it comes from.
type shape uint8

const (
	// widened is a byte, made an integer of more bits.
	widened shape = 1 << iota
	// raised is an integer that moved to the left by whole bytes.
	raised
	// lowered is an integer that moved to the right.
	lowered
	// bytesAt is an unsafe.Pointer to bytes, otherAt one to something else.
	bytesAt
	otherAt
)

// flow follows shapes through one package: through variables, fields, parameters
// and results, whatever the order of the statements.
type flow struct {
	info   *types.Info
	shapes map[types.Object]shape
	grew   bool
}

// handWritten finds where the files of a package put numbers into bytes or take
// them out: with encoding/binary, with shifts or with arithmetic in their place,
// or by looking at memory as another type.
func (p *typedFiles) handWritten() (found []handmade) {
	f := &flow{info: p.info, shapes: map[types.Object]shape{}}
	for f.grew = true; f.grew; {
		f.grew = false
		for _, file := range p.files {
			f.learn(file)
		}
	}
	for _, file := range sorted(p.files) {
		for _, spec := range file.Imports {
			if spec.Path.Value == `"encoding/binary"` {
				found = append(found, handmade{spec.Pos(), "imports encoding/binary"})
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				found = append(found, f.joined(n, n.Op, n.X, n.Y)...)
			case *ast.AssignStmt:
				if op, ok := assignOps[n.Tok]; ok {
					found = append(found, f.joined(n, op, n.Lhs[0], n.Rhs[0])...)
				}
			case *ast.CallExpr:
				found = append(found, f.converted(n)...)
			}
			return true
		})
	}
	return found
}

// assignOps are the operators of assignments that compute.
var assignOps = map[token.Token]token.Token{
	token.SHL_ASSIGN: token.SHL, token.MUL_ASSIGN: token.MUL, token.SHR_ASSIGN: token.SHR, token.QUO_ASSIGN: token.QUO,
	token.OR_ASSIGN: token.OR, token.ADD_ASSIGN: token.ADD, token.XOR_ASSIGN: token.XOR,
}

// joined finds x op y to put a number together from bytes.
func (f *flow) joined(n ast.Node, op token.Token, x, y ast.Expr) []handmade {
	sx, sy := f.of(x), f.of(y)
	switch op {
	case token.SHL, token.MUL:
		if f.moves(op, x, y) && (sx&widened != 0 || op == token.MUL && sy&widened != 0) {
			return []handmade{{n.Pos(), "a byte is shifted into a number"}}
		}
	case token.OR, token.ADD, token.XOR:
		if sx&raised != 0 && sy&widened != 0 || sy&raised != 0 && sx&widened != 0 {
			return []handmade{{n.Pos(), "a number is put together from bytes"}}
		}
	}
	return nil
}

// converted finds a conversion to cut a number into bytes, or to look at memory
// as something else.
func (f *flow) converted(call *ast.CallExpr) []handmade {
	to, arg := f.conversion(call)
	if to == nil || f.isConstant(call) {
		return nil
	}
	if isByte(to) {
		x := ast.Unparen(arg)
		low, ok := x.(*ast.BinaryExpr)
		if f.of(x)&lowered != 0 || ok && low.Op == token.REM && f.isPower(low.Y) {
			return []handmade{{call.Pos(), "a number is cut into bytes"}}
		}
		return nil
	}
	pointer, ok := to.Underlying().(*types.Pointer)
	if !ok || !isUnsafe(f.info.TypeOf(arg)) {
		return nil
	}
	from := f.of(arg) // of memory that the system gave, nothing is known
	if ofBytes(pointer.Elem()) && from&otherAt != 0 || !ofBytes(pointer.Elem()) && from != otherAt {
		return []handmade{{call.Pos(), "memory is looked at as another type"}}
	}
	return nil
}

// conversion returns the type that call converts to, and what it converts; nil
// if it is no conversion.
func (f *flow) conversion(call *ast.CallExpr) (types.Type, ast.Expr) {
	if tv := f.info.Types[call.Fun]; len(call.Args) == 1 && tv.IsType() {
		return tv.Type, call.Args[0]
	}
	return nil, nil
}

// of returns the shape of x.
func (f *flow) of(x ast.Expr) shape {
	if f.isConstant(x) {
		return 0
	}
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
		return f.shapes[f.object(x)]
	case *ast.CallExpr:
		return f.ofCall(x)
	case *ast.BinaryExpr:
		return f.ofBinary(x.Op, x.X, x.Y)
	}
	return 0
}

func (f *flow) ofCall(call *ast.CallExpr) shape {
	to, arg := f.conversion(call)
	switch {
	case to == nil && isUnsafe(f.info.TypeOf(call)) && len(call.Args) > 0:
		return f.of(call.Args[0]) // unsafe.Add
	case to == nil:
		return f.shapes[f.object(call.Fun)]
	case isUnsafe(to):
		return f.ofPointer(arg)
	case isByte(to) || !isInteger(to):
		return 0
	case f.mayBeByte(arg):
		return widened
	}
	return f.of(arg)
}

// ofPointer returns the shape of an unsafe.Pointer to where x points.
func (f *flow) ofPointer(x ast.Expr) shape {
	typ := f.info.TypeOf(x)
	if typ == nil {
		return 0
	}
	p, ok := typ.Underlying().(*types.Pointer)
	switch {
	case !ok:
		return f.of(x)
	case ofBytes(p.Elem()):
		return bytesAt
	}
	return otherAt
}

func (f *flow) ofBinary(op token.Token, x, y ast.Expr) shape {
	switch op {
	case token.AND, token.AND_NOT:
		return f.of(x) | f.of(y)
	case token.OR, token.XOR, token.ADD:
		return (f.of(x) | f.of(y)) &^ widened
	case token.SHL, token.MUL:
		if f.moves(op, x, y) {
			return raised
		}
	case token.SHR, token.QUO:
		if f.moves(op, x, y) && !f.mayBeByte(x) && f.of(x)&widened == 0 {
			return lowered
		}
	}
	return 0
}

// moves says whether x op y moves x by whole bytes, or by a number of bits that
// is not constant. To the right, by any number: what is left is cut next.
func (f *flow) moves(op token.Token, x, y ast.Expr) bool {
	switch op {
	case token.MUL:
		return f.isPower(x) || f.isPower(y)
	case token.QUO:
		return f.isPower(y)
	case token.SHR:
		return true
	}
	n, ok := f.constant(y)
	return !ok || n >= 8 && n%8 == 0
}

// isPower says whether x is a constant power of 256.
func (f *flow) isPower(x ast.Expr) bool {
	n, ok := f.constant(x)
	for ; ok && n > 255 && n%256 == 0; n /= 256 {
		if n == 256 {
			return true
		}
	}
	return false
}

func (f *flow) constant(x ast.Expr) (uint64, bool) {
	value := f.info.Types[x].Value
	if value == nil {
		return 0, false
	}
	return constant.Uint64Val(constant.ToInt(value))
}

func (f *flow) isConstant(x ast.Expr) bool { return f.info.Types[x].Value != nil }

// mayBeByte says whether x is a byte, or an element of what is not known.
func (f *flow) mayBeByte(x ast.Expr) bool {
	typ := f.info.TypeOf(x)
	if typ == nil || typ == types.Typ[types.Invalid] {
		_, ok := ast.Unparen(x).(*ast.IndexExpr)
		return ok
	}
	return isByte(typ)
}

// object returns the variable, field or function that x names. The elements of a
// variable, and what it points to, have its shapes.
func (f *flow) object(x ast.Expr) types.Object {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		return f.info.ObjectOf(x)
	case *ast.SelectorExpr:
		return f.info.ObjectOf(x.Sel)
	case *ast.IndexExpr: // or a function with type parameters
		return f.object(x.X)
	case *ast.StarExpr:
		return f.object(x.X)
	case *ast.UnaryExpr:
		return f.object(x.X)
	}
	return nil
}

// learn adds to the shapes what the statements of file say.
func (f *flow) learn(file *ast.File) {
	var funcs []types.Object // of those that surround a statement
	var stack []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			if last := stack[len(stack)-1]; isFunc(last) {
				funcs = funcs[:len(funcs)-1]
			}
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		switch n := n.(type) {
		case *ast.FuncDecl:
			funcs = append(funcs, f.info.Defs[n.Name])
		case *ast.FuncLit:
			funcs = append(funcs, nil)
		case *ast.AssignStmt:
			if op, ok := assignOps[n.Tok]; ok {
				f.put(f.object(n.Lhs[0]), f.ofBinary(op, n.Lhs[0], n.Rhs[0]))
				break
			}
			for i := range n.Lhs {
				f.put(f.object(n.Lhs[i]), f.of(n.Rhs[min(i, len(n.Rhs)-1)]))
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if len(n.Names) == len(n.Values) {
					f.put(f.info.Defs[name], f.of(n.Values[i]))
				}
			}
		case *ast.RangeStmt:
			f.put(f.object(n.Value), f.of(n.X))
		case *ast.ReturnStmt:
			for _, x := range n.Results {
				f.put(funcs[len(funcs)-1], f.of(x))
			}
		case *ast.CallExpr:
			f.pass(n)
		}
		return true
	})
}

func isFunc(n ast.Node) bool {
	switch n.(type) {
	case *ast.FuncDecl, *ast.FuncLit:
		return true
	}
	return false
}

// pass gives the shapes of arguments to parameters.
func (f *flow) pass(call *ast.CallExpr) {
	fn, ok := f.object(call.Fun).(*types.Func)
	if !ok {
		return
	}
	params := fn.Signature().Params()
	for i, arg := range call.Args {
		if i < params.Len() && !(fn.Signature().Variadic() && i == params.Len()-1) {
			f.put(params.At(i), f.of(arg))
		}
	}
}

func (f *flow) put(to types.Object, s shape) {
	if to != nil && f.shapes[to]|s != f.shapes[to] {
		f.shapes[to] |= s
		f.grew = true
	}
}

// isByte says whether typ is a byte under whatever name. A type of one byte with
// named values is an enumeration, and none.
func isByte(typ types.Type) bool {
	b, ok := typ.Underlying().(*types.Basic)
	if !ok || b.Kind() != types.Uint8 {
		return false
	}
	named, ok := types.Unalias(typ).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return true
	}
	scope := named.Obj().Pkg().Scope()
	for _, name := range scope.Names() {
		if c, ok := scope.Lookup(name).(*types.Const); ok && types.Identical(c.Type(), typ) {
			return false
		}
	}
	return true
}

// isInteger says whether typ is an integer, or a type parameter, which may be
// one.
func isInteger(typ types.Type) bool {
	if _, ok := types.Unalias(typ).(*types.TypeParam); ok {
		return true
	}
	b, ok := typ.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsInteger != 0
}

func isUnsafe(typ types.Type) bool {
	if typ == nil {
		return false
	}
	b, ok := typ.Underlying().(*types.Basic)
	return ok && b.Kind() == types.UnsafePointer
}

// ofBytes says whether typ is a byte, or an array or slice of bytes.
func ofBytes(typ types.Type) bool {
	switch typ := typ.Underlying().(type) {
	case *types.Array:
		return ofBytes(typ.Elem())
	case *types.Slice:
		return ofBytes(typ.Elem())
	}
	return isByte(typ)
}

// spelled finds magics: as numbers, as bytes and within strings, also such as are
// computed from constants.
func (p *typedFiles) spelled(file *ast.File, magics map[uint64]bool) (found []handmade) {
	ast.Inspect(file, func(n ast.Node) bool {
		x, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		if list, ok := x.(*ast.CompositeLit); ok && p.spells(p.front(list), magics) {
			found = append(found, handmade{n.Pos(), "the bytes of a magic are spelled"})
			return false
		}
		value := p.info.Types[x].Value
		if value == nil || !written(x) {
			return true
		}
		switch value.Kind() {
		case constant.Int:
			number, exact := constant.Uint64Val(value)
			if negative, ok := constant.Int64Val(value); ok && negative < 0 {
				number, exact = uint64(uint32(negative)), negative >= -1<<31
			}
			if exact && magics[number] {
				found = append(found, handmade{n.Pos(), "a magic is spelled"})
				return false
			}
		case constant.String:
			if p.spells(constant.StringVal(value), magics) {
				found = append(found, handmade{n.Pos(), "the bytes of a magic are spelled"})
				return false
			}
		}
		return true
	})
	return found
}

// written says whether x is more than the name of a constant.
func written(x ast.Expr) bool {
	switch ast.Unparen(x).(type) {
	case *ast.BasicLit, *ast.BinaryExpr, *ast.UnaryExpr:
		return true
	}
	return false
}

// front returns the constant bytes at the front of list.
func (p *typedFiles) front(list *ast.CompositeLit) string {
	var front strings.Builder
	for _, e := range list.Elts {
		value := p.info.Types[e].Value
		if value == nil {
			break
		}
		n, ok := constant.Uint64Val(constant.ToInt(value))
		if !ok || n > 255 {
			break
		}
		front.WriteByte(byte(n))
	}
	return front.String()
}

// spells says whether the first bytes of a magic, in either order, stand in text.
func (p *typedFiles) spells(text string, magics map[uint64]bool) bool {
	for magic := range magics {
		little := constant.Bytes(constant.MakeUint64(magic))
		big := slices.Clone(little)
		slices.Reverse(big)
		if strings.Contains(text, string(big[:3])) || strings.Contains(text, string(little[:3])) {
			return true
		}
	}
	return false
}
