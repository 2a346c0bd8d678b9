// Answers of libDAI in full precision: UAI model in; MAR, PR and, of BP, its messages out.
//
// Compile against libDAI 0.3 (https://github.com/dbtsai/libDAI), with Boost and GMP; libDAI itself with `make lib DEBUG=`,
// for the assertions that it checks otherwise take half of the time:
//     g++ -O3 -o spinbench-libdai libdai.cpp -ldai -lgmpxx -lgmp
//
// usage: spinbench-libdai MODEL.uai METHOD FILE.MAR FILE.PR [FILE.messages]
// METHOD as libDAI names it: JTREE[updates=HUGIN,...], BP[updates=SEQMAX,...].
// The messages: iterations and largest change; then a factor, a variable and its message's logarithms, a line each.

#include <cmath>
#include <fstream>
#include <iostream>
#include <memory>
#include <dai/alldai.h>
#include <dai/bp.h>
#include <dai/io.h>

namespace {

struct OpenBP : dai::BP {
    OpenBP(const dai::FactorGraph &graph, const dai::PropertySet &options) : dai::BP(graph, options) {}

    void tell(std::ostream &out) {
        out << Iterations() << ' ' << maxDiff() << '\n';
        for (size_t v = 0; v < nrVars(); v++)
            for (size_t k = 0; k < nbV(v).size(); k++) {
                out << nbV(v)[k].node << ' ' << v;
                for (size_t s = 0; s < var(v).states(); s++) out << ' ' << (props.logdomain ? message(v, k)[s] : std::log(message(v, k)[s]));
                out << '\n';
            }
    }
};

std::ofstream opened(const char *path) {
    std::ofstream out(path);
    if (!out) throw std::runtime_error(std::string("cannot write ") + path);
    out.precision(17);
    return out;
}

int answer(int argc, char **argv) {
    std::vector<dai::Var> variables;
    std::vector<dai::Factor> factors;
    std::vector<dai::Permute> permutations;
    dai::ReadUaiAieFactorGraphFile(argv[1], 0, variables, factors, permutations);
    const dai::FactorGraph graph(factors.begin(), factors.end(), variables.begin(), variables.end(),
                                 factors.size(), variables.size());
    const auto method = dai::parseNameProperties(argv[2]);
    const bool messages = argc > 5;
    OpenBP *open = messages ? new OpenBP(graph, method.second) : nullptr;
    const std::unique_ptr<dai::InfAlg> found(messages ? open : dai::newInfAlg(method.first, graph, method.second));
    found->init();
    found->run();
    std::ofstream mar = opened(argv[3]), pr = opened(argv[4]);
    mar << "MAR\n" << graph.nrVars();
    for (size_t v = 0; v < graph.nrVars(); v++) {
        const dai::Factor belief = found->belief(graph.var(v));
        mar << ' ' << belief.nrStates();
        for (size_t s = 0; s < belief.nrStates(); s++) mar << ' ' << belief[s];
    }
    mar << '\n';
    pr << "PR\n" << found->logZ() / std::log(10.0) << '\n';
    if (messages) {
        std::ofstream out = opened(argv[5]);
        open->tell(out);
    }
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    try {
        if (argc < 5) throw std::runtime_error("usage: MODEL.uai METHOD FILE.MAR FILE.PR [FILE.messages]");
        return answer(argc, argv);
    } catch (const std::exception &error) {
        std::cerr << error.what() << std::endl;
        return 1;
    }
}
