package bench
import ("testing";"fmt";"heddle/internal/testkit";"heddle/internal/spec";"heddle/internal/report";"encoding/binary";"heddle/internal/dataplane")
func probeFrame(dst, src [6]byte, v6, tcp bool) []byte {
	f := make([]byte, 74)
	copy(f, dst[:]); copy(f[6:], src[:])
	if v6 { f[12],f[13]=0x86,0xdd; f[14]=0x60; f[19]=20; f[20]=17; f[21]=64; f[37]=1; f[53]=2; f[55]=9;f[57]=9; return f}
	f[12], f[13] = 8, 0
	f[14]=0x45; binary.BigEndian.PutUint16(f[16:],60); f[22]=64; f[23]=17
	if tcp {f[23]=6; f[46]=0x50; f[47]=0x10}
	copy(f[26:],[]byte{10,0,0,1,10,0,0,2}); f[35]=7; f[37]=9
	return f
}
func TestProbe(t *testing.T){
	testkit.Root(t)
	type cell struct{name string; b *dataplane.FrameBench; f []byte; s []float64}
	var cells []*cell
	for _, c := range []struct{n string; in,out,v6,tcp bool}{{"off",false,false,false,false},{"egress",false,true,false,false},{"both",true,true,false,false},{"egress6",false,true,true,false},{"both tcp",true,true,false,true}} {
		b,err:=dataplane.NewFrameBench(1); if err!=nil {t.Fatal(err)}
		defer b.Close()
		d,err:=desired(3,access100(),false,nowhere); if err!=nil {t.Fatal(err)}
		for _,p:=range d.Plan.Switches[0].Ports {
			p.Policy.Monitoring.IPFIX.V=c.in||c.out
			p.Policy.Monitoring.Observe.V=spec.ObserveBoth
			if !c.in {p.Policy.Monitoring.Observe.V=spec.ObserveEgress}
		}
		if err:=b.Apply(d);err!=nil{t.Fatal(err)}
		cells=append(cells,&cell{name:c.n,b:b,f:probeFrame(portMAC(1),portMAC(0),c.v6,c.tcp)})
	}
	var empty []float64
	for i:=0;i<15;i++{
		e,_:=cells[0].b.Empty(200000); empty=append(empty,e.Seconds())
		for _,c:=range cells { d,err:=c.b.One(portID(0),c.f,200000); if err!=nil{t.Fatal(err)}; c.s=append(c.s,d.Seconds()) }
	}
	fmt.Printf("empty %.1f\n",report.Summarise(empty).Median*1e9)
	for _,c:=range cells { s:=report.Summarise(c.s); fmt.Printf("%-10s %.1f (%.1f-%.1f)  +%.1f\n",c.name,s.Median*1e9,s.Q1*1e9,s.Q3*1e9, report.Summarise(difference(c.s,cells[0].s)).Median*1e9) }
}
